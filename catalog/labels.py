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

__all__ = ["Label", "LabelTable", "explained_labels", "is_directing", "labels_of"]


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
_ADDRESSES: Final = _set("endpoint host uri url webhook")
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
    """For a source `SERVER/TOOL`, which may be a pattern: patterns of sinks that its data may go to."""

    def set_for(self, tool: ToolId) -> frozenset[Label] | None:
        """Return the labels an operator set, None where none did."""
        patterns = self.labels.get(tool.server, {})
        if tool.tool in patterns:
            return patterns[tool.tool]
        matching = [pattern for pattern in patterns if fnmatchcase(tool.tool, pattern)]
        return patterns[max(matching, key=len)] if matching else None

    def grants(self, source: ToolId, sink: ToolId) -> bool:
        """Return whether data of a source may go to a sink."""
        return any(
            fnmatchcase(str(source), giver) and any(fnmatchcase(str(sink), pattern) for pattern in sinks)
            for giver, sinks in self.granted.items()
        )


def labels_of(tool: Tool, effect: Effect, table: LabelTable | None = None) -> frozenset[Label]:
    """Return a tool's labels: the operator's, else those its annotations and words speak for.

    Args:
        tool: as its server lists it.
        effect: its confirmed class.
        table: the operator's labels.
    """
    return frozenset(explained_labels(tool, effect, table))


def explained_labels(tool: Tool, effect: Effect, table: LabelTable | None = None) -> Mapping[Label, str]:
    """Return a tool's labels, each with what it follows from."""
    if table is not None and (given := table.set_for(tool.id)) is not None:
        return {label: "configured" for label in Label if label in given}
    named = frozenset(words(tool.id.tool))
    said = (
        named | frozenset(words(f"{tool.title or ''} {tool.description[:400]}")) | frozenset(_arguments(tool))
    )
    is_open = tool.annotations.open_world
    found: dict[Label, str] = {}
    if effect is not Effect.PURE and is_open is not True and (private := said & _PRIVATE):
        found[Label.PRIVATE] = _spoken(private)
    if why := _may_read_strangers(tool, effect, said):
        found[Label.UNTRUSTED] = why
    if why := _may_send(tool, effect, named):
        found[Label.PUBLIC_SINK] = why
    if not effect.is_free and tool.annotations.destructive is not False:
        found[Label.DESTRUCTIVE] = f"its class is {effect.value}, and it does not say that nothing is lost"
    return found


def _spoken(found: frozenset[str]) -> str:
    return f"it speaks of {', '.join(sorted(found)[:3])}"


def is_directing(argument: str) -> bool:
    """Return whether an argument says where to or what to do, rather than what about."""
    return bool(_DIRECTING & frozenset(words(argument)))


def _may_read_strangers(tool: Tool, effect: Effect, said: frozenset[str]) -> str:
    """Return why a tool may give text of strangers, empty when nothing speaks for it.

    What a write gives back is a receipt or a handle: a database's is no text of strangers, though its
    description speaks of threads and addresses.
    """
    if effect in (Effect.PURE, Effect.WRITE) or tool.annotations.open_world is False:
        return ""
    if tool.annotations.open_world:
        return "says that its world is open"
    return _spoken(said & _STRANGERS) if said & _STRANGERS else ""


def _may_send(tool: Tool, effect: Effect, named: frozenset[str]) -> str:
    """Return why a tool may send data away, empty when nothing speaks for it."""
    if effect is Effect.PURE or tool.annotations.open_world is False:
        return ""
    if asked := frozenset(_arguments(tool)) & _ADDRESSES:
        return f"it takes {', '.join(sorted(asked))}"
    if not effect.is_free and (sending := named & _SENDING):
        return f"its name says {', '.join(sorted(sending))}"
    return ""


def _arguments(tool: Tool) -> list[str]:
    properties: JsonValue = tool.input_schema.get("properties")
    return [word for name in properties for word in words(name)] if isinstance(properties, dict) else []
