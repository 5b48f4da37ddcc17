"""What search sees of a tool or a skill: its texts, field by field.

A sentence that opens most descriptions of one server tells none of its tools from another and
is left out. Skills are made into entries by `skills_store.retrieval`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from catalog.schema.references import subschemas
from catalog.similarity import words
from catalog.tools import JsonSchema, Tool

__all__ = ["Entry", "EntryKind", "parameter_texts", "spread", "tool_entries", "tool_entry", "tool_key"]

EntryKind = Literal["tool", "skill"]

_MAX_PROSE: Final = 2_000
_MEANING_PROSE: Final = 300
"""Characters of a description that its vector is made of: the model reads about 128 words."""
_MEANING_DETAILS: Final = 500
_SHARED: Final = 0.5
"""Share of a server's tools whose descriptions must open alike for the opening to be left out."""
_FEWEST_SHARING: Final = 3
_MOST_OPENING: Final = 4
"""Sentences of an opening that are compared."""
_TERM: Final = re.compile(r"\w+")
_SENTENCE: Final = re.compile(r"(?<=[.!?:])\s+")
_REMARKS: Final = re.compile(r"\n\s*\n|\b(?:Args|Arguments|Parameters|Returns|Examples?):")


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool or a skill with the texts it is found by."""

    key: str
    """Unique among all entries of an index."""
    kind: EntryKind
    owner: str
    """The server of a tool, the name of a skill: what a principal is allowed or not."""
    names: frozenset[str]
    """Lower-case texts that ask for exactly this entry."""
    name: str
    title: str
    description: str
    parameters: str
    values: str

    @property
    def meanings(self) -> tuple[str, ...]:
        """Texts whose vectors stand for it: what it is called and does, and what it takes."""
        told = (_REMARKS.split(self.description)[0].strip() or self.description)[:_MEANING_PROSE]
        details = f"{told} {self.parameters} {self.values}"[:_MEANING_DETAILS].strip()
        return tuple(dict.fromkeys((f"{self.name}: {told}", details or self.name)))


def tool_key(server: str, tool: str) -> str:
    """Return the key of a tool's entry."""
    return f"tool:{server}/{tool}"


def tool_entries(tools: Iterable[Tool]) -> list[Entry]:
    """Return the entries of some tools, in their order."""
    listed = list(tools)
    by_server: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in listed:
        by_server[tool.id.server].append(tool)
    told: dict[int, str] = {}
    for of_server in by_server.values():
        told |= zip(map(id, of_server), _without_shared([t.description for t in of_server]), strict=True)
    return [tool_entry(tool, told[id(tool)]) for tool in listed]


def tool_entry(tool: Tool, description: str | None = None) -> Entry:
    """Return the entry of one tool; its description may be given without what its server's share."""
    names, described, values = parameter_texts(tool.input_schema)
    told = tool.description if description is None else description
    return Entry(
        key=tool_key(tool.id.server, tool.id.tool),
        kind="tool",
        owner=tool.id.server,
        names=frozenset({tool.id.tool.lower(), str(tool.id).lower()}),
        name=spread(tool.id.tool),
        title=tool.title or "",
        description=told[:_MAX_PROSE],
        parameters=f"{names} {described}"[:_MAX_PROSE].strip(),
        values=values[:_MAX_PROSE],
    )


def spread(identifier: str) -> str:
    """Return an identifier's words, and the whole of a part that mixes letters and digits."""
    return " ".join(dict.fromkeys(word for token in _TERM.findall(identifier) for word in split(token)))


def split(token: str) -> tuple[str, ...]:
    """Return a token's words, and the whole of it where splitting parts letters from digits."""
    parts = words(token)
    return parts if len(parts) <= 1 or "_" in token else (*parts, token.lower())


def parameter_texts(schema: JsonSchema) -> tuple[str, str, str]:
    """Return the names, the descriptions and the allowed values of a schema's parameters."""
    names: list[str] = []
    described: list[str] = []
    values: list[str] = []
    for name, sub in _parameters(schema):
        names.append(spread(name))
        described.append(str(sub.get("description") or ""))
        values.extend(spread(value) for value in _values(sub))
    return " ".join(names), " ".join(filter(None, described)), " ".join(dict.fromkeys(values))


def _parameters(schema: JsonSchema) -> Iterator[tuple[str, JsonSchema]]:
    properties = schema.get("properties")
    for name, sub in properties.items() if isinstance(properties, dict) else ():
        if isinstance(sub, dict):
            yield name, sub


def _values(schema: JsonSchema) -> Iterator[str]:
    """Yield the strings a parameter allows, those of a union or of its items too."""
    listed = schema.get("enum")
    yield from (value for value in listed if isinstance(value, str)) if isinstance(listed, list) else ()
    for _, sub in subschemas(schema):
        if isinstance(sub, dict) and isinstance(inner := sub.get("enum"), list):
            yield from (value for value in inner if isinstance(value, str))


def _without_shared(descriptions: Sequence[str]) -> list[str]:
    """Return the descriptions without the opening sentences that most of them have."""
    sentences = [_SENTENCE.split(text.strip()) for text in descriptions]
    openings = Counter(tuple(said[:n]) for said in sentences for n in range(1, _opening(said) + 1))
    enough = max(_FEWEST_SHARING, _SHARED * len(descriptions))
    return [_after(said, text, openings, enough) for said, text in zip(sentences, descriptions, strict=True)]


def _opening(said: Sequence[str]) -> int:
    return min(len(said) - 1, _MOST_OPENING)


def _after(said: list[str], text: str, openings: Counter[tuple[str, ...]], enough: float) -> str:
    shared = 0
    while shared < _opening(said) and openings[tuple(said[: shared + 1])] >= enough:
        shared += 1
    return " ".join(said[shared:]) if shared else text
