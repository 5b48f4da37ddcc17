"""Forty-two ways out of a sandbox, each a function that returns a text with ESCAPED where it got out.

Every function takes `secret` (a file), `marker` (a file that must not come to be), `port` (a listener on
loopback), `parent` (the process that runs the tests), and `pause` (seconds).
"""

from __future__ import annotations

import textwrap

__all__ = ["ABUSES", "ATTEMPTS", "REACHES"]

_OPEN_FROM = """
    for one in {classes}:
        found = getattr(getattr(one, "__init__", None), "__globals__", None)
        if found and "__builtins__" in found:
            builtins = found["__builtins__"]
            builtins = builtins if isinstance(builtins, dict) else builtins.__dict__
            return "ESCAPED " + builtins["open"](secret).read()
    return "nothing"
"""


def _body(text: str) -> str:
    lines = textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
    return f"def attempt(secret, marker, port, parent):\n{lines}\n"


_FILES = {
    "open_a_file": 'return "ESCAPED " + open(secret).read()',
    "open_with_pathlib": 'import pathlib\nreturn "ESCAPED " + pathlib.Path(secret).read_text()',
    "open_with_io": 'import io\nreturn "ESCAPED " + io.open(secret).read()',
    "open_with_os": 'import os\nreturn "ESCAPED " + os.read(os.open(secret, os.O_RDONLY), 99).decode()',
    "write_a_file": 'open(marker, "w").write("x")\nreturn "ESCAPED"',
    "list_a_folder": 'import os\nreturn "ESCAPED " + str(os.listdir(os.path.dirname(secret)))',
    "remove_a_file": 'import os\nos.remove(secret)\nreturn "ESCAPED"',
    "link_a_file": 'import os\nos.symlink(secret, marker)\nreturn "ESCAPED"',
    "read_own_memory": 'return "ESCAPED " + str(len(open("/proc/self/mem", "rb").read(1)))',
    "read_the_parents_environment": 'return "ESCAPED " + str(open(f"/proc/{parent}/environ", "rb").read())',
    "read_passwords": 'return "ESCAPED " + open("/etc/passwd").read()',
}
_WORLD = {
    "environment": 'import os\nreturn "ESCAPED " + os.environ["SKILLBANK_CANARY"]',
    "network": (
        'import socket\nsocket.create_connection(("127.0.0.1", port), 2).sendall(b"x")\nreturn "ESCAPED"'
    ),
    "network_by_url": (
        'import urllib.request\nurllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2)\n'
        'return "ESCAPED"'
    ),
    "unix_socket": 'import socket\nsocket.socket(socket.AF_UNIX)\nreturn "ESCAPED"',
    "shell": 'import os\nreturn "ESCAPED" if os.system(f"touch {marker}") == 0 else "refused"',
    "subprocess": ('import subprocess\nsubprocess.run(["touch", marker], check=True)\nreturn "ESCAPED"'),
    "exec": 'import os\nos.execv("/bin/touch", ["touch", marker])\nreturn "ESCAPED"',
    "fork": 'import os\npid = os.fork()\nif pid == 0:\n    os._exit(0)\nreturn "ESCAPED"',
    "thread": (
        "import threading\nran = []\none = threading.Thread(target=ran.append, args=(1,))\n"
        'one.start()\none.join()\nreturn "ESCAPED" if ran else "nothing"'
    ),
    "signal_the_parent": 'import os\nos.kill(parent, 0)\nreturn "ESCAPED"',
    "signal_by_system_call": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        'return "ESCAPED" if libc.syscall(234, parent, parent, 0) == 0 else "refused"'
    ),
    "trace_the_parent": (
        'import ctypes\nreturn "ESCAPED" if ctypes.CDLL(None).ptrace(16, parent, 0, 0) == 0 else "refused"'
    ),
}
_LANGUAGE = {
    "import_by_name": '__import__("os").system(f"touch {marker}")\nreturn "done"',
    "walk_the_subclasses": _OPEN_FROM.format(classes="().__class__.__base__.__subclasses__()"),
    "dunders_from_pieces": (
        'u = "_" + "_"\nbase = getattr(getattr((), u + "class" + u), u + "base" + u)\n'
        + textwrap.dedent(_OPEN_FROM.format(classes='getattr(base, u + "subclasses" + u)()'))
    ),
    "attribute_getter": "import operator\n"
    + textwrap.dedent(
        _OPEN_FROM.format(classes='operator.attrgetter("__class__.__base__.__subclasses__")(())()')
    ),
    "frames_of_a_traceback": """
        try:
            raise ValueError
        except ValueError as error:
            frame = error.__traceback__.tb_frame
        while frame is not None:
            if "SKILLBANK_HOST_CANARY" in frame.f_globals:
                return "ESCAPED to the host"
            frame = frame.f_back
        return "nothing"
    """,
    "frames_of_a_generator": """
        def outer():
            yield here.gi_frame.f_back.f_back
        here = outer()
        frame = next(here)
        while frame is not None:
            if "SKILLBANK_HOST_CANARY" in frame.f_globals:
                return "ESCAPED to the host"
            frame = frame.f_back
        return "nothing"
    """,
    "json_has_codecs": 'import json\nreturn "ESCAPED " + json.codecs.open(secret).read()',
    "statistics_has_sys": (
        'import statistics\nstatistics.sys.modules["os"].system(f"touch {marker}")\nreturn "done"'
    ),
    "random_has_os": 'import random\nrandom._os.system(f"touch {marker}")\nreturn "done"',
    "regex_has_sys": 'import re\nre.enum.sys.modules["os"].system(f"touch {marker}")\nreturn "done"',
    "evaluated_text": """return eval('"ESCAPED " + open(secret).read()')""",
    "null_pointer": 'import ctypes\nctypes.string_at(0)\nreturn "survived"',
}
ABUSES = {
    "endless_loop": "while True:\n    pass",
    "huge_power": "return 9 ** 9 ** 9 % 7",
    "patient_pattern": 'import re\nre.match("(a+)+$", "a" * 40 + "b")\nreturn "done"',
    "memory_in_pieces": 'kept = []\nwhile True:\n    kept.append("a" * 10_000_000 + str(len(kept)))',
    "memory_at_once": 'return str(len("a" * (3 * 10 ** 9)))',
    "deep_recursion": "def deeper(n):\n    return deeper(n + 1)\nreturn deeper(0)",
    "output": 'for _ in range(3000):\n    print("x" * 1_000_000)\nreturn "y" * 100_000_000',
}
"""Attempts to use up what there is; they have to be stopped, whatever they return."""

_TEXTS = {**_FILES, **_WORLD, **_LANGUAGE, **ABUSES}
ATTEMPTS = {name: _body(text) for name, text in _TEXTS.items()}
REACHES = frozenset(
    {
        *("open_a_file", "open_with_pathlib", "open_with_io", "open_with_os", "write_a_file"),
        *("list_a_folder", "link_a_file", "read_passwords", "environment", "network", "unix_socket"),
        *("shell", "subprocess", "fork", "thread", "signal_the_parent", "signal_by_system_call"),
        *("import_by_name", "walk_the_subclasses", "dunders_from_pieces", "attribute_getter"),
        *("json_has_codecs", "statistics_has_sys", "random_has_os", "regex_has_sys", "evaluated_text"),
    }
)
"""Those that get out of an interpreter that nothing confines: the control of the tests."""
