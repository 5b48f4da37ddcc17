"""The catalog as a model reads it: one line a tool, as a signature, within a budget of tokens.

A signature costs a third of the JSON Schema it stands for. A small catalog is shown whole and in
one order, whatever the task, so that a provider's prompt cache holds; of a large one the tools are
shown that the task, or a clause of it, speaks of. What is left out of a line is left out of no
check: arguments are always validated against the tool's own schema.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Literal

from catalog.plain_text import plain_text
from catalog.schema import types
from catalog.similarity import words
from catalog.tools import JsonSchema, Snapshot, Tool, ToolId
from server.planning.leaves import closed_part
from server.planning.literals import clauses, wording
from server.planning.view import World

__all__ = [
    "RETRIEVED_TOOLS",
    "WHOLE_CATALOG_TOKENS",
    "CatalogView",
    "Detail",
    "render_tool",
    "retrieved_tools",
    "tool_labels",
    "view_catalog",
]

WHOLE_CATALOG_TOKENS = 2_500
"""A catalog of at most so many tokens is shown whole.

A first reading of so many takes a compact model half a minute on two cores, which is the bound. That a
catalog shown whole pays by its prompt cache was measured on small ones only (`skillbank bench planning`:
179 tokens read anew for a plan against 266, of catalogs up to 1,150 tokens).
"""
RETRIEVED_TOOLS = 14
"""Tools shown of a larger catalog: a request of several steps needs more than its best hits."""

Detail = Literal["full", "brief", "bare"]
_DETAILS: tuple[Detail, ...] = ("full", "brief", "bare")
_PROSE: dict[Detail, int] = {"full": 110, "brief": 60, "bare": 0}
_MOST_VALUES = 12
_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)\.\s+(?=[A-Z`'\"])")
_DEPTH = 2

CountTokens = Callable[[str], Awaitable[int]]


@dataclass(frozen=True)
class CatalogView:
    """Some tools as a model sees them. `labels` are the names it calls them by."""

    tools: tuple[Tool, ...]
    labels: dict[ToolId, str]
    text: str
    tokens: int
    is_whole: bool
    """Whether every known tool is in it, so that it is the same for the next task."""

    @cached_property
    def by_label(self) -> dict[str, Tool]:
        """The tools by the names a model calls them by."""
        return {self.labels[tool.id]: tool for tool in self.tools}


def tool_labels(snapshot: Snapshot) -> dict[ToolId, str]:
    """Return the shortest name that tells each tool apart: its own, else `server.tool`."""
    taken = Counter(tool.id.tool for tool in snapshot)
    return {
        tool.id: tool.id.tool if taken[tool.id.tool] == 1 else f"{tool.id.server}.{tool.id.tool}"
        for tool in snapshot
    }


async def view_catalog(
    world: World,
    count: CountTokens,
    budget: int,
    *,
    whole_up_to: int = WHOLE_CATALOG_TOKENS,
    needed: Sequence[ToolId] = (),
) -> CatalogView:
    """Return the tools a model is shown for a task.

    Args:
        world: the task and the tools there are.
        count: tells how many tokens a text has for the model that reads it.
        budget: most tokens of the view; where even the barest lines pass it, tools are left out.
        whole_up_to: tokens up to which every tool is shown.
        needed: tools that are shown before those the task speaks of.
    """
    labels = tool_labels(world.snapshot)
    everything = sorted(world.snapshot, key=lambda tool: tool.id)
    text = render_tools(everything, labels, "full")
    tokens = await count(text)
    if tokens <= min(whole_up_to, budget):
        return CatalogView(tuple(everything), labels, text, tokens, is_whole=True)
    first = {tool.id: tool for wanted in needed if (tool := world.snapshot.get(wanted)) is not None}
    found = {
        tool.id: tool for tool in retrieved_tools(world, RETRIEVED_TOOLS) or everything[:RETRIEVED_TOOLS]
    }
    return await _fitted([*(first | found).values()], labels, count, budget)


async def _fitted(
    chosen: Sequence[Tool], labels: dict[ToolId, str], count: CountTokens, budget: int
) -> CatalogView:
    """Return as many of the tools, best first, in as much detail as the budget holds."""
    kept = list(chosen)
    while True:
        shown = sorted(kept, key=lambda tool: tool.id)
        for detail in _DETAILS:
            text = render_tools(shown, labels, detail)
            tokens = await count(text)
            if tokens <= budget or (len(kept) == 1 and detail == "bare"):
                return CatalogView(tuple(shown), labels, text, tokens, is_whole=False)
        kept = kept[: max(1, len(kept) * 2 // 3)]


def retrieved_tools(world: World, limit: int) -> list[Tool]:
    """Return the tools a task speaks of, those of every clause before anyone's second best."""
    asked = [world.task, *clauses(world.task)]
    found = [[hit.tool for hit in world.index.search(wording(said), limit)] for said in asked if said]
    in_turn = [tool for rank in zip_longest(*found) for tool in rank if tool is not None]
    known = {tool.id: tool for tool in in_turn if tool.id in world.snapshot}
    return list(known.values())[:limit]


def render_tools(tools: Iterable[Tool], labels: dict[ToolId, str], detail: Detail) -> str:
    """Return one line a tool."""
    return "\n".join(render_tool(tool, labels[tool.id], detail) for tool in tools)


def render_tool(tool: Tool, label: str, detail: Detail = "full") -> str:
    """Return a tool as a signature with what it is for, such as `add(a: number) -> {sum: number}`."""
    schema = closed_part(tool.input_schema, tool.input_schema)
    properties = _properties(schema)
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    ordered = sorted(properties, key=lambda name: name not in names)
    given = ", ".join(_parameter(n, properties[n], is_required=n in names) for n in ordered)
    output = tool.output_schema
    answer = _type(closed_part(output, output)) if output else "text"
    prose = _prose(tool, properties, detail)
    return f"{label}({given}) -> {answer}" + (f"  # {prose}" if prose else "")


def _parameter(name: str, schema: JsonSchema, *, is_required: bool) -> str:
    default = schema.get("default")
    shown = (
        f" = {json.dumps(default)}" if default is not None and not isinstance(default, dict | list) else ""
    )
    kind = _type(schema, 0 if is_required else _DEPTH)
    return f"{name}{'' if is_required else '?'}: {kind}{shown}"


def _prose(tool: Tool, properties: dict[str, JsonSchema], detail: Detail) -> str:
    limit = _PROSE[detail]
    if not limit:
        return ""
    parts = [_sentence(tool.description or tool.title or "", limit)]
    if detail == "full":
        parts += [
            f"{name}: {_sentence(text, limit)}"
            for name, schema in properties.items()
            if (text := str(schema.get("description") or "")) and _says_more(name, text)
        ]
    return "; ".join(part for part in parts if part)


def _says_more(name: str, text: str) -> bool:
    """Return whether a description says more than the name and the type do."""
    return len(set(words(text)) - set(words(name))) > 3


def _sentence(text: str, limit: int) -> str:
    line = _SENTENCE_END.split(" ".join(plain_text(text, 4 * limit).split()), 1)[0].rstrip(".")
    return line if len(line) <= limit else line[: limit - 1].rsplit(" ", 1)[0] + "…"


def _properties(schema: JsonSchema) -> dict[str, JsonSchema]:
    properties = schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return {name: part for name, part in named.items() if isinstance(part, dict)}


def _type(schema: JsonSchema, depth: int = 0) -> str:
    """Return what a schema admits in a few words: enumerations, parts and ranges, never prose."""
    values = schema.get("enum")
    if isinstance(values, list) and len(values) <= _MOST_VALUES:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in values)
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list):
            shown = [_type(o, depth) for o in options if isinstance(o, dict) and o.get("type") != "null"]
            return "|".join(dict.fromkeys(shown)) or "null"
    admitted = [kind for kind in sorted(types(schema)) if kind != "null"]
    if len(admitted) != 1:
        return "any" if len(admitted) > 3 else "|".join(admitted)
    match admitted[0]:
        case "array":
            items = schema.get("items")
            return f"[{_type(items, depth + 1) if isinstance(items, dict) else 'any'}]"
        case "object":
            return _object(schema, depth)
        case "integer" | "number" as kind:
            return kind + _range(schema)
        case "string":
            return "string" + _form(schema)
        case kind:
            return kind


def _object(schema: JsonSchema, depth: int) -> str:
    properties = _properties(schema)
    if not properties or depth >= _DEPTH:
        return "object"
    return "{" + ", ".join(f"{name}: {_type(part, depth + 1)}" for name, part in properties.items()) + "}"


def _range(schema: JsonSchema) -> str:
    low, high = (schema.get(key) for key in ("minimum", "maximum"))
    return (
        ""
        if low is None and high is None
        else f" {'' if low is None else low}..{'' if high is None else high}"
    )


def _form(schema: JsonSchema) -> str:
    kind, pattern = schema.get("format"), schema.get("pattern")
    if isinstance(kind, str):
        return f"<{kind}>"
    return f" /{pattern}/" if isinstance(pattern, str) and len(pattern) <= 24 else ""
