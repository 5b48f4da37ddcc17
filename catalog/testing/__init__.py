"""Real tool servers with scripted answers, latency, faults and defects.

The double behind every seam that needs an upstream: in-process (`open_test_connections`) or as a
child process (`python -m catalog.testing SCENARIO.json`), in both protocol eras.
"""

from catalog.testing.connecting import in_process, open_test_connections
from catalog.testing.script import CallLog, LoggedCall, Refuse, Reply, ScriptedTool, Vanish
from catalog.testing.scripted import ScriptedServer

__all__ = [
    "CallLog",
    "LoggedCall",
    "Refuse",
    "Reply",
    "ScriptedServer",
    "ScriptedTool",
    "Vanish",
    "in_process",
    "open_test_connections",
]
