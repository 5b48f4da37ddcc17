"""Asks a person whether a call that is not free may happen.

When consent is needed is the effect policy's word; how it is asked over MCP belongs to
`server.surface`. An answer counts for one call as it was shown, and for one episode.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import anyio
import anyio.to_thread
import click

from catalog.canonical import JsonValue, digest
from catalog.effects import Effect
from catalog.plain_text import plain_text
from catalog.tools import ToolId
from server.execution.calls import CallRequest
from skills_store.approvals import Approval, approval_for

__all__ = [
    "Approvals",
    "Consent",
    "ConsentQuestion",
    "GrantAll",
    "NoConsent",
    "Remembered",
    "TerminalConsent",
]

_LOG = logging.getLogger(__name__)

_SHOWN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """A call that waits for a person's word."""

    tool: ToolId
    arguments: dict[str, JsonValue]
    effect: Effect
    reason: str


class Consent(Protocol):
    """Where a person can be asked. Questions come one at a time."""

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Return the person's word, or None when nobody can be asked."""
        ...


class NoConsent:
    """Nobody can be asked: the call needs approval some other way."""

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Return None."""
        del question
        return None


class GrantAll:
    """Consent was given beforehand to whatever is asked; each call still happens at most once."""

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Return True."""
        del question
        return True


def _prompt_on_stderr(text: str) -> str | None:
    if not sys.stdin.isatty():
        return None
    try:
        return str(click.prompt(text, type=click.Choice(["y", "n", "a"]), default="n", err=True))
    except click.Abort:
        return None


@dataclass
class TerminalConsent:
    """Asks on the terminal: yes, no, or all calls of this tool.

    `prompt` shows a text and returns `y`, `n` or `a`, or None when nobody answers; it may block.
    """

    prompt: Callable[[str], str | None] = _prompt_on_stderr
    _always: set[ToolId] = field(default_factory=set[ToolId], init=False)

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Return the person's word; `a` is remembered for the tool."""
        if question.tool in self._always:
            return True
        text = render_question(question)
        answer = await anyio.to_thread.run_sync(self.prompt, text, abandon_on_cancel=True)
        if answer == "a":
            self._always.add(question.tool)
        return None if answer is None else answer in ("y", "a")


def render_question(question: ConsentQuestion) -> str:
    """Return the question as a terminal shows it: the call, its class, and why it is asked."""
    arguments = json.dumps(question.arguments, ensure_ascii=True, indent=2)
    if len(arguments) > _SHOWN_CHARACTERS:
        arguments = f"{arguments[:_SHOWN_CHARACTERS]}… ({len(arguments)} characters)"
    asked = "Call it? (y)es, (n)o, (a)ll calls of this tool"
    return f"{plain_text(str(question.tool))} ({question.reason})\n{arguments}\n{asked}"


@dataclass(frozen=True)
class Remembered:
    """Consent that was given for good, else that of another who can be asked.

    An approval holds for the tool as it was: one that changed since is asked about again.
    """

    asked: Consent
    approvals: Callable[[], Iterable[Approval]]
    contract_hash: Callable[[ToolId], str]
    """Of a tool as it is now, empty where it is not known."""

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Return True where an approval covers the call, else the person's word."""
        tool = question.tool
        kept = approval_for(self.approvals(), tool, question.arguments, self.contract_hash(tool))
        if kept is None:
            return await self.asked.ask(question)
        _LOG.info("%s is allowed by the remembered approval %s", tool, kept.id)
        return True


class Approvals:
    """A person's answers, remembered for one episode; one question at a time."""

    def __init__(self, consent: Consent) -> None:
        self._consent = consent
        self._answers: dict[tuple[ToolId, str, str], bool | None] = {}
        self._asking = anyio.Lock()

    async def granted(self, request: CallRequest, effect: Effect, reason: str) -> bool | None:
        """Return a person's word on a call, None when nobody can be asked.

        Asked once for each node, tool and arguments: a yes never covers what was not shown.
        """
        key = (request.tool, request.node, digest(request.arguments))
        async with self._asking:
            if key not in self._answers:
                question = ConsentQuestion(request.tool, request.arguments, effect, reason)
                self._answers[key] = await self._consent.ask(question)
            return self._answers[key]
