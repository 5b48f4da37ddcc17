"""What a tool does with information: where data comes from it, and where it could leak to.

Labels are for the flow check (`skills_store.workflow.flows`). They come from the operator, else
from annotations and words; a tool that may send text away is a sink unless it says that its world is
closed. What a tool does to the world is `catalog.effects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from catalog.canonical import JsonValue
from catalog.effects import Effect
from catalog.similarity import words
from catalog.tools import Tool, ToolId

__all__ = ["Label", "LabelTable", "is_directing", "labels_of"]


class Label(StrEnum):
    """One thing a tool does with information."""

    PRIVATE = "private"
    """Gives data of the user: files, mail, records."""
    UNTRUSTED = "untrusted"
    """Gives text that strangers wrote."""
    PUBLIC_SINK = "public_sink"
    """Takes text out of the user's hands: sends, posts, or asks an address for it."""
    DESTRUCTIVE = "destructive"
    """Changes something that may not come back."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PRIVATE: Final = _set(
    "account address bookmark calendar contact credential customer database db document email employee "
    "env file folder inbox invoice key mail memory message note order password patient payment photo "
    "profile record reminder repo repository secret sheet table token user vault"
)
_STRANGERS: Final = _set(
    "article browse comment feed fetch forum html http inbox issue mail message news page post reddit "
    "review rss scrape search thread tweet url web webpage website wikipedia"
)
_SENDING: Final = _set(
    "comment dispatch email forward invite mail message notify post publish push reply send share submit "
    "tweet upload webhook"
)
_DIRECTING: Final = _set(
    "address bcc body cc channel cmd code command destination dest email file filename host path query "
    "recipient script shell sql statement target to uri url webhook"
)


@dataclass(frozen=True)
class LabelTable:
    """Labels by server and tool pattern, as the operator set them; an exact name wins over a pattern."""

    labels: Mapping[str, Mapping[str, frozenset[Label]]] = field(
        default_factory=dict[str, Mapping[str, frozenset[Label]]]
    )
    granted: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """For a source `SERVER/TOOL`: patterns of sinks that its data may go to."""

    def set_for(self, tool: ToolId) -> frozenset[Label] | None:
        """Return the labels an operator set, None where none did."""
        patterns = self.labels.get(tool.server, {})
        if tool.tool in patterns:
            return patterns[tool.tool]
        matching = [pattern for pattern in patterns if fnmatchcase(tool.tool, pattern)]
        return patterns[max(matching, key=len)] if matching else None

    def grants(self, source: ToolId, sink: ToolId) -> bool:
        """Return whether data of a source may go to a sink."""
        return any(fnmatchcase(str(sink), pattern) for pattern in self.granted.get(str(source), ()))


def labels_of(tool: Tool, effect: Effect, table: LabelTable | None = None) -> frozenset[Label]:
    """Return a tool's labels: the operator's, else those its annotations and words speak for.

    Args:
        tool: as its server lists it.
        effect: its confirmed class.
        table: the operator's labels.
    """
    if table is not None and (given := table.set_for(tool.id)) is not None:
        return given
    named = frozenset(words(tool.id.tool))
    said = (
        named | frozenset(words(f"{tool.title or ''} {tool.description[:400]}")) | frozenset(_arguments(tool))
    )
    is_open = tool.annotations.open_world
    found: set[Label] = set()
    if effect is not Effect.PURE and is_open is not True and said & _PRIVATE:
        found.add(Label.PRIVATE)
    if effect is not Effect.PURE and is_open is not False and (is_open is True or said & _STRANGERS):
        found.add(Label.UNTRUSTED)
    if _may_send(tool, effect, named):
        found.add(Label.PUBLIC_SINK)
    if not effect.is_free and tool.annotations.destructive is not False:
        found.add(Label.DESTRUCTIVE)
    return frozenset(found)


def is_directing(argument: str) -> bool:
    """Return whether an argument says where to or what to do, rather than what about."""
    return bool(_DIRECTING & frozenset(words(argument)))


def _may_send(tool: Tool, effect: Effect, named: frozenset[str]) -> bool:
    if effect is Effect.PURE or tool.annotations.open_world is False:
        return False
    asks_an_address = bool(frozenset(_arguments(tool)) & {"url", "uri", "webhook", "host", "endpoint"})
    return asks_an_address or (not effect.is_free and bool(named & _SENDING))


def _arguments(tool: Tool) -> list[str]:
    properties: JsonValue = tool.input_schema.get("properties")
    return [word for name in properties for word in words(name)] if isinstance(properties, dict) else []
