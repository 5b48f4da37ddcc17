"""The demo: the whole of skillbank on real tool servers, with no model and no key.

`stories` says what is told, `staging` prepares folder and servers, `mending` repairs and learns on
a bank, `calling` is a client of our own server, `judging` says whether all went right, `narration`
shows it; `run` is the order of it all.
"""

from server.demo.run import run_demo

__all__ = ["run_demo"]
