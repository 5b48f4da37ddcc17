"""Names of the tools a client sees: fixed ones, the published skills' beside them, then upstream tools'.

A skill that is called like an always-there tool keeps its own name in the bank and is listed
under another one; so does an upstream tool that is called like a skill. This module imports no
protocol, so that curation may ask it too.
"""

from __future__ import annotations

from collections.abc import Iterable

from catalog.names import portable_name
from catalog.tools import ToolId

__all__ = ["ADMIN_NAMES", "BUILTIN_NAMES", "listed_names", "listed_tool_names"]

ADMIN_NAMES = (
    "add_server",
    "remove_server",
    "explore_server",
    "review_skill",
    "roll_back_skill",
    "set_effect",
)
"""Tools that are listed with `serve --admin`; reserved always, so that names do not depend on it."""

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
    "job",
)
"""The always-there tools in the order in which they are listed."""


def listed_names(published: Iterable[str]) -> dict[str, str]:
    """Return for each published tool name the name it is listed under; no two are equal.

    The same set gives the same names, in whatever order it comes.
    """
    names = sorted(published)
    reserved = (*BUILTIN_NAMES, *ADMIN_NAMES)
    listed = {name: name for name in names if name not in reserved}
    taken = {name: ("", name) for name in (*reserved, *listed)}
    for name in names:
        if name in reserved:
            listed[name] = portable_name("skill", name, taken)
            taken[listed[name]] = ("skill", name)
    return listed


def listed_tool_names(
    tools: Iterable[ToolId], skills: Iterable[str], bare: frozenset[str] = frozenset()
) -> dict[ToolId, str]:
    """Return the name each upstream tool is listed under; no two are equal, and none is a skill's.

    Args:
        tools: to be listed.
        skills: names that are taken by skills.
        bare: servers whose tools go by their own names where they can.
    """
    taken = {name: ("", name) for name in (*BUILTIN_NAMES, *skills)}
    claims: dict[str, list[ToolId]] = {}
    ordered = sorted(tools)
    for tool in ordered:
        if tool.server in bare and portable_name("", tool.tool, {}, limit=64) == tool.tool:
            claims.setdefault(tool.tool, []).append(tool)
    listed = {claimed[0]: name for name, claimed in claims.items() if len(claimed) == 1 and name not in taken}
    taken |= {name: (tool.server, tool.tool) for tool, name in listed.items()}
    for tool in ordered:
        if tool not in listed:
            listed[tool] = portable_name(tool.server, tool.tool, taken)
            taken[listed[tool]] = (tool.server, tool.tool)
    return listed
