"""Names of the tools a client sees: fixed ones, and the published skills' beside them.

A skill that is called like an always-there tool keeps its own name in the bank and is listed
under another one. This module imports no protocol, so that curation may ask it too.
"""

from __future__ import annotations

from collections.abc import Iterable

from catalog.names import portable_name

__all__ = ["BUILTIN_NAMES", "listed_names"]

BUILTIN_NAMES = (
    "solve",
    "run_workflow",
    "repair_workflow",
    "find_skills",
    "describe_skill",
    "call_skill",
    "find_tools",
    "call_tool",
    "report_outcome",
    "save_skill",
)
"""The always-there tools in the order in which they are listed."""


def listed_names(published: Iterable[str]) -> dict[str, str]:
    """Return for each published tool name the name it is listed under; no two are equal.

    The same set gives the same names, in whatever order it comes.
    """
    names = sorted(published)
    listed = {name: name for name in names if name not in BUILTIN_NAMES}
    taken = {name: ("", name) for name in (*BUILTIN_NAMES, *listed)}
    for name in names:
        if name in BUILTIN_NAMES:
            listed[name] = portable_name("skill", name, taken)
            taken[listed[name]] = ("skill", name)
    return listed
