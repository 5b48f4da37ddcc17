"""Proposes what a tool does to the world, for a person to confirm once.

Rules over the verbs of name and description, the parameters and the annotations. The error that
counts is a write proposed as `pure` or `read`: every doubt ends in `unknown`, and no annotation
makes a tool `pure` or a write free. What a proposal is used for belongs to `catalog.effects`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from catalog.canonical import JsonValue
from catalog.effect_words import (
    AGENTS,
    ARCHIVES,
    ARITHMETIC,
    ASKS,
    CODE,
    DOUBTFUL,
    FILES,
    FLEETING,
    KEPT,
    MATHS,
    OUTSIDE,
    PLACES,
    PURE,
    READS,
    SAYS_KEPT,
    SAYS_READS,
    SAYS_WRITES,
    SINKS,
    SQL,
    STATE,
    TEXTS,
    TRANSFORMS,
    WRITES,
)
from catalog.effects import Effect, Reset
from catalog.similarity import words
from catalog.tools import Tool, ToolId

__all__ = ["Proposal", "propose_effect", "propose_reset"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a tool seems to do, with the evidence as one sentence."""

    tool: ToolId
    effect: Effect
    reason: str


def propose_effect(tool: Tool) -> Proposal:
    """Return the class that a tool's name, words, parameters and annotations speak for."""
    effect, reason = _judged(_Evidence(tool))
    return Proposal(tool.id, effect, reason)


def propose_reset(tools: Iterable[Tool]) -> tuple[Reset, str]:
    """Return how the server of these tools could be reset, and why.

    `process` only where the tools keep sessions or handles of the process and none that may
    write takes a path or an address; everything else is for a person to say.
    """
    seen = [(_Evidence(tool), propose_effect(tool).effect) for tool in tools]
    costly = [evidence for evidence, effect in seen if not effect.is_free]
    if not costly:
        return Reset.NONE, "every tool may repeat, there is nothing to restore"
    for evidence in costly:
        if places := evidence.parameter_words & (PLACES | CODE | SQL) - {"table"}:
            return Reset.NONE, f"{evidence.name} may write where {_first(places)!r} says"
    holders = [e.name for e in costly if e.parameter_words & {"conn", "connection", "session", "handle"}]
    if not holders:
        return Reset.NONE, "no session or handle shows that its state lives in the process"
    return (
        Reset.PROCESS,
        f"{holders[0]} works on a session of the process, and nothing writes by path or address",
    )


@dataclass(frozen=True)
class _Evidence:
    """What the rules look at."""

    tool: Tool

    @property
    def name(self) -> str:
        return self.tool.id.tool

    @cached_property
    def name_words(self) -> tuple[str, ...]:
        return words(self.name)

    @cached_property
    def verb(self) -> str | None:
        """The first verb of the name, else the one its agent does, else that of the description."""
        if ASKS.match(self.tool.description):
            return "check"
        own = next((word for word in self.name_words if word in _VERBS and not self._is_noun(word)), None)
        agent = next((AGENTS[word] for word in self.name_words if word in AGENTS), None)
        return own or agent or (self.said_verb if self.said_verb in _VERBS else None)

    def _is_noun(self, word: str) -> bool:
        """Whether a word that may be a verb ends a name as what a computation is of."""
        nouns = ("change", "test")
        return word in nouns and word == self.name_words[-1] and bool(self.maths - {word})

    @property
    def computes(self) -> str | None:
        """The word that says that it computes: a verb, or in a name without one what is computed."""
        if self.verb in PURE or (self.verb in ARITHMETIC and self.is_numeric):
            return self.verb
        if self.verb == "extract" and self.parameter_words & TEXTS:
            return self.verb
        return _first(self.maths) if self.verb is None and self.maths else None

    @cached_property
    def maths(self) -> frozenset[str]:
        """What the name says is computed."""
        return frozenset(self.name_words) & MATHS

    @cached_property
    def said_verb(self) -> str | None:
        """The word that the description begins with."""
        return next(iter(words(self.tool.description.strip()[:60])), None)

    @cached_property
    def properties(self) -> dict[str, JsonValue]:
        found = self.tool.input_schema.get("properties")
        return found if isinstance(found, dict) else {}

    @cached_property
    def parameter_words(self) -> frozenset[str]:
        """Words of all parameters but the switches, which hold nothing."""
        named = (name for name, sub in self.properties.items() if not _is_switch(sub))
        return frozenset(word for name in named for word in words(name))

    @cached_property
    def text_words(self) -> frozenset[str]:
        return frozenset((*self.name_words, *words(f"{self.tool.title or ''} {self.tool.description}")))

    @property
    def kept(self) -> str | None:
        """The word that says that it works on something kept between calls."""
        named = frozenset(self.name_words)
        if held := named & (KEPT | STATE):
            return _first(held)
        said = SAYS_KEPT.search(self.tool.description)
        return None if said is None else said.group(0).lower()

    @property
    def sink(self) -> str | None:
        """A parameter that says where to write, or whether to."""
        for name in self.properties:
            parts = frozenset(words(name))
            if "destination" in parts and len(parts) == 1 and {"origin", "departure"} & self.parameter_words:
                continue
            if parts & SINKS or (parts & {"out", "output"} and (len(parts) == 1 or parts & FILES)):
                return name
        return None

    @property
    def is_numeric(self) -> bool:
        """Whether every parameter takes numbers."""
        kinds = [sub.get("type") for sub in self.properties.values() if isinstance(sub, dict)]
        return bool(kinds) and all(kind in ("integer", "number") for kind in kinds)


_VERBS: Final = WRITES | DOUBTFUL | READS | PURE


def _judged(evidence: _Evidence) -> tuple[Effect, str]:
    hints = evidence.tool.annotations
    if hints.destructive and not hints.read_only:
        return Effect.WRITE, "its annotation says that it destroys"
    if hints.read_only is False:
        return Effect.WRITE, "its annotation says that it is not read-only"
    if (written := _writing(evidence)) is not None:
        return (
            (Effect.UNKNOWN, f"{written}, though annotated read-only")
            if hints.read_only
            else (Effect.WRITE, written)
        )
    doubt = _doubt(evidence)
    if doubt is not None and not hints.read_only:
        return Effect.UNKNOWN, doubt
    if doubt is None and (computed := _computing(evidence)) is not None:
        return Effect.PURE, computed
    if hints.read_only:
        return Effect.READ, "annotated read-only, and nothing in its name or parameters says otherwise"
    if evidence.verb in READS:
        return Effect.READ, f"{evidence.verb!r} reads, and no parameter or word says that it writes"
    if (word := evidence.computes) is not None:
        return Effect.READ, f"{word!r} computes, but not from its arguments alone"
    return Effect.UNKNOWN, "nothing in its name, description or parameters says what it does"


def _writing(evidence: _Evidence) -> str | None:
    """Return the evidence that the tool writes."""
    verb, named = evidence.verb, evidence.name_words
    if verb in ARITHMETIC and evidence.is_numeric:
        return None
    if verb in WRITES:
        return f"{verb!r} changes something"
    joined = [word for before, word in pairwise(named) if before in ("and", "or", "then")]
    if also := [word for word in joined if word in WRITES]:
        return f"its name says {also[0]!r} too"
    if "replace" in named:
        return "'replace' changes something"
    if {"thought", "next"} <= evidence.parameter_words:
        return "it keeps a numbered chain of thoughts"
    return None


def _doubt(evidence: _Evidence) -> str | None:
    """Return what makes it uncertain that the tool only reads."""
    verb, parameters, computes = evidence.verb, evidence.parameter_words, evidence.computes
    if parameters & SQL or ("query" in parameters and verb in ("execute", "query", "run")):
        said = SAYS_READS.search(evidence.tool.description)
        return None if said else "the statement it takes may write"
    if verb in DOUBTFUL:
        return f"{verb!r} may do anything"
    if (sink := evidence.sink) is not None:
        return f"its parameter {sink!r} names something it may write"
    if said := SAYS_WRITES.search(evidence.tool.description):
        return f"its description says {said.group(0).lower()!r}"
    if computes and not evidence.properties:
        return f"{computes!r} works on something that is kept, since it takes no arguments"
    if computes and parameters & CODE:
        return "it takes code or a command"
    if computes and (kept := evidence.kept):
        return f"it works on something that is kept: {kept!r}"
    if verb == "extract" and (packed := evidence.text_words & ARCHIVES):
        return f"it may unpack: {_first(packed)!r}"
    if verb in TRANSFORMS and (held := parameters & (PLACES | STATE) - {"uri", "url"}):
        return f"{verb!r} may change the {_first(held)!r} it is given"
    if evidence.said_verb in WRITES - ARITHMETIC:
        return f"its description begins with {evidence.said_verb!r}"
    if {"cursor", "id"} <= parameters:
        return "it moves a cursor"
    return None


def _computing(evidence: _Evidence) -> str | None:
    """Return the evidence that the tool computes from its arguments and nothing else."""
    if (word := evidence.computes) is None or not evidence.properties or evidence.said_verb in READS:
        return None
    if evidence.parameter_words & (PLACES | STATE | {"id"}) or evidence.tool.annotations.open_world:
        return None
    if (evidence.text_words | evidence.parameter_words) & (FLEETING | OUTSIDE):
        return None
    return f"{word!r} computes, and its parameters name no file, address, session or other state"


def _is_switch(schema: JsonValue) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "boolean"


def _first(found: frozenset[str]) -> str:
    return min(found)
