"""Proposes what a tool does to the world, for a person to confirm once.

Rules over the verbs of name and description, the parameters and the annotations. The error that
counts is a write proposed as `pure` or `read`: every doubt ends in `unknown`, and no annotation
makes a tool `pure` or a write free. What a proposal is used for belongs to `catalog.effects`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from catalog.canonical import JsonValue
from catalog.effects import Effect, Reset
from catalog.similarity import words
from catalog.tools import Tool, ToolId

__all__ = ["Proposal", "propose_effect", "propose_reset"]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRITES: Final = _set(
    "accept acknowledge activate add advance alter append apply approve archive assign attach authorize "
    "ban block book buy cancel change checkout cherry clean clear click clone close commit complete "
    "configure connect consume copy create deactivate delete deploy dequeue destroy disable disconnect "
    "dispatch drag drop edit email enable enqueue erase exchange fill finish flush follow forget grant "
    "import init initialize insert install invite kill launch link lock login logout mark migrate modify "
    "move mute navigate notify open optimize overwrite patch pause pay persist pin play pop post press "
    "publish purge push put rebase record recover refund register reject release remember remove rename "
    "reopen replace reply reschedule reset restart restore resume retry revert revoke rollback save "
    "schedule sell send set share shutdown sign sleep spawn stage start stash stop store submit subscribe "
    "swap switch sync tag terminate toggle touch track train transfer trash type undo unlink unlock "
    "unmerge unpin unregister unset unstage untag update upgrade upload upsert vacuum wait wipe withdraw "
    "write"
)
_DOUBTFUL: Final = _set(
    "ask backup build call capture compile compress delegate deserialize download draw dump eval exec "
    "execute export extract fit generate handle invoke load make manage merge perform plan plot process "
    "query render request route run scan select serialize simulate step test think use visualize"
)
_READS: Final = _set(
    "analyse analyze browse count describe detail diff discover display enumerate explain fetch find get "
    "grep head info inspect list locate lookup measure monitor peek preview read recall retrieve return "
    "search show stat status summarize tail trace tree version view watch"
)
_PURE: Final = _set(
    "average base64 calculate check classify compare compute concatenate convert cosine decode derive "
    "detect determine differentiate divide encode escape estimate evaluate expand exponentiate factor "
    "factorize floor format hash integrate invert lowercase mean multiply negate normalize parse power "
    "reverse round simplify slugify solve sort split sqrt subtract sum tokenize transform translate "
    "transpose trim truncate uppercase validate verify"
)
_ARITHMETIC: Final = _set("add")
_TRANSFORMS: Final = _set(
    "convert decode encode format reverse sort split transform translate transpose trim"
)

_FILES: Final = _set("dir directory document file filename filepath folder path paths workbook")
_PLACES: Final = _FILES | _set(
    "address bucket cell database db host paragraph port presentation project repo repository server "
    "shape sheet slide table uri url worksheet"
)
_STATE: Final = _set(
    "account conn connection context cursor handle history instance job key memory notebook ref session "
    "slot state store task token user workspace"
)
_KEPT: Final = _set("history inplace session stored")
_SINKS: Final = _set("destination dest dry dst force overwrite prune save saved")
_SQL: Final = _set("sql script statement stmt")
_FLEETING: Final = _set(
    "clock currency current dice exchange latest live now random realtime shuffle timestamp today "
    "tomorrow uuid zone"
)
_OUTSIDE: Final = _set(
    "api browser database download fetch filesystem http https internet network online server web website"
)

_NOT: Final = r"(?<!not )(?<!n't )(?<!never )(?<!without )"
_SAYS_WRITES: Final = re.compile(
    rf"\b{_NOT}(?:appends|creates|deletes|executes|inserts|installs|launches|modifies|mutates|"
    r"overwrites|persists|publishes|removes|renames|replaces|saves|sends|spawns|submits|writes|"
    r"save[ds]? (?:to|in|as|under)|stored? (?:in|to)|writ(?:e|ten|ing) (?:to|into)|side[ -]effects?|"
    r"downloads|permanently)\b"
    r"|(?:^|[.;:]\s+|\b(?:also|and|it|or|that|then|tool|which)\s+)"
    r"(?:commits|deploys|drops|posts|records|registers|resets|schedules|stores|updates|uploads)\b",
    re.IGNORECASE,
)
_SAYS_READS: Final = re.compile(
    r"\bread[- ]?only\b|\bselect[- ]only\b|\bonly (?:select|read)\b|\bselect (?:queries|statements) only\b"
    r"|\bexecute a select query\b",
    re.IGNORECASE,
)
_CODE: Final = _set("code cmd command script shell")


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
        if places := evidence.parameter_words & (_PLACES | _CODE | _SQL) - {"table"}:
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
        """The first verb of the name, else the verb that the description begins with."""
        own = next((word for word in self.name_words if word in _VERBS), None)
        return own or (self.said_verb if self.said_verb in _VERBS else None)

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
        return frozenset(word for name in self.properties for word in words(name))

    @cached_property
    def text_words(self) -> frozenset[str]:
        return frozenset((*self.name_words, *words(f"{self.tool.title or ''} {self.tool.description}")))

    @property
    def sink(self) -> str | None:
        """A parameter that says where to write, or whether to."""
        for name in self.properties:
            parts = frozenset(words(name))
            if parts & _SINKS or (parts & {"out", "output"} and (len(parts) == 1 or parts & _FILES)):
                return name
        return None

    @property
    def is_numeric(self) -> bool:
        """Whether every parameter takes numbers."""
        kinds = [sub.get("type") for sub in self.properties.values() if isinstance(sub, dict)]
        return bool(kinds) and all(kind in ("integer", "number") for kind in kinds)


_VERBS: Final = _WRITES | _DOUBTFUL | _READS | _PURE


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
    if evidence.verb in _READS:
        return Effect.READ, f"{evidence.verb!r} reads, and no parameter or word says that it writes"
    if evidence.verb in _PURE:
        return Effect.READ, f"{evidence.verb!r} computes, but not from its arguments alone"
    return Effect.UNKNOWN, "nothing in its name, description or parameters says what it does"


def _writing(evidence: _Evidence) -> str | None:
    """Return the evidence that the tool writes."""
    verb, named = evidence.verb, evidence.name_words
    if verb in _ARITHMETIC and evidence.is_numeric:
        return None
    if verb in _WRITES:
        return f"{verb!r} changes something"
    joined = [word for before, word in pairwise(named) if before in ("and", "or", "then")]
    if also := [word for word in joined if word in _WRITES]:
        return f"its name says {also[0]!r} too"
    if "replace" in named:
        return "'replace' changes something"
    return None


def _doubt(evidence: _Evidence) -> str | None:
    """Return what makes it uncertain that the tool only reads."""
    verb, parameters = evidence.verb, evidence.parameter_words
    if parameters & _SQL or ("query" in parameters and verb in ("execute", "query", "run")):
        said = _SAYS_READS.search(evidence.tool.description)
        return None if said else "the statement it takes may write"
    if verb in _DOUBTFUL:
        return f"{verb!r} may do anything"
    if (sink := evidence.sink) is not None:
        return f"its parameter {sink!r} names something it may write"
    if said := _SAYS_WRITES.search(evidence.tool.description):
        return f"its description says {said.group(0).lower()!r}"
    if verb in _PURE and parameters & _CODE:
        return "it takes code or a command"
    if verb in _PURE and (kept := evidence.text_words & _KEPT or frozenset(evidence.name_words) & _STATE):
        return f"it works on something that is kept: {_first(kept)!r}"
    if verb in _TRANSFORMS and (held := parameters & (_PLACES | _STATE)):
        return f"{verb!r} may change the {_first(held)!r} it is given"
    if evidence.said_verb in _WRITES - _ARITHMETIC:
        return f"its description begins with {evidence.said_verb!r}"
    if {"cursor", "id"} <= parameters:
        return "it moves a cursor"
    return None


def _computing(evidence: _Evidence) -> str | None:
    """Return the evidence that the tool computes from its arguments and nothing else."""
    verb = evidence.verb
    arithmetic = verb in _ARITHMETIC and evidence.is_numeric
    if not (arithmetic or verb in _PURE) or not evidence.properties:
        return None
    if evidence.parameter_words & (_PLACES | _STATE) or evidence.tool.annotations.open_world:
        return None
    if (evidence.text_words | evidence.parameter_words) & (_FLEETING | _OUTSIDE):
        return None
    return f"{verb!r} computes, and its parameters name no file, address, session or other state"


def _first(found: frozenset[str]) -> str:
    return min(found)
