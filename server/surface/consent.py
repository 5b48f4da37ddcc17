"""Asks the person behind an MCP client whether a call that is not free may happen.

The question is one form in both protocol eras. Handshake-era sessions are asked in the middle of the
call; how a 2026-07-28 call waits for its answer between two requests is `suspension`.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Protocol

import mcp.types as types
from mcp import MCPError
from mcp.server.session import ServerSession

from catalog.canonical import digest
from catalog.tools import ToolId
from server.execution.consent import ConsentQuestion
from server.surface.suspension import Ask, Questions

__all__ = [
    "Answer",
    "AskPerson",
    "McpConsent",
    "Remember",
    "SessionApprovals",
    "allows",
    "ask_nobody",
    "asking",
    "can_ask",
    "consent_form",
    "elicit",
    "parse_answer",
    "question_digest",
]

_LOG = logging.getLogger(__name__)
_SHOWN_CHARACTERS = 2_000
_ANSWER_KEY = "consent"


class Answer(StrEnum):
    """What a person can choose; the words are what a client shows."""

    ONCE = "allow this call"
    TOOL = "allow all calls of this tool now"
    SESSION = "allow this tool in this session"
    ARGUMENTS = "always allow it with these arguments"
    ALWAYS = "always allow this tool"
    NO = "refuse"


_NOW: Final = (Answer.ONCE, Answer.TOOL, Answer.NO)
"""Choices that leave nothing behind."""
_MOST_SESSIONS: Final = 1_000


class AskPerson(Protocol):
    """Shows a question to the person behind a client; None when nobody decided."""

    async def __call__(
        self, question: ConsentQuestion, choices: Sequence[Answer] = _NOW, /
    ) -> Answer | None: ...


Remember = Callable[[ConsentQuestion, bool], None]
"""Keeps an approval for good: of these arguments alone where the flag says so."""


class SessionApprovals:
    """What people allowed until their session ends; the oldest session is forgotten first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, set[ToolId]] = OrderedDict()

    def of(self, session: str | None) -> set[ToolId] | None:
        """Return the tools that are allowed in a session, to be added to; None outside of one."""
        if session is None:
            return None
        tools = self._sessions.setdefault(session, set())
        self._sessions.move_to_end(session)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return tools


class McpConsent:
    """Consent of the person behind one tool call.

    Args:
        ask_person: shows them the question.
        session: tools that are allowed as long as the session lasts; None: there is no session.
        remember: keeps an approval for good; None: nothing is kept.
    """

    def __init__(
        self,
        ask_person: AskPerson,
        session: set[ToolId] | None = None,
        remember: Remember | None = None,
    ) -> None:
        self._ask_person = ask_person
        self._allowed: set[ToolId] = set()
        self._session = session
        self._remember = remember

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Return the person's word, or None when nobody can be asked."""
        if question.tool in self._allowed or question.tool in (self._session or ()):
            return True
        answer = await self._ask_person(question, self._choices)
        match answer:
            case Answer.TOOL:
                self._allowed.add(question.tool)
            case Answer.SESSION if self._session is not None:
                self._session.add(question.tool)
            case Answer.ARGUMENTS | Answer.ALWAYS if self._remember is not None:
                self._remember(question, answer is Answer.ARGUMENTS)
            case _:
                pass
        return None if answer is None else allows(answer)

    @property
    def _choices(self) -> tuple[Answer, ...]:
        session = () if self._session is None else (Answer.SESSION,)
        lasting = () if self._remember is None else (Answer.ARGUMENTS, Answer.ALWAYS)
        return (*_NOW[:-1], *session, *lasting, Answer.NO)


def allows(answer: Answer) -> bool:
    """Return whether an answer lets the call happen."""
    return answer is not Answer.NO


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Return whether a client declared that it shows forms to its user."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None:
        return False
    return elicitation.form is not None or elicitation.url is None


def consent_form(
    question: ConsentQuestion, choices: Sequence[Answer] = _NOW
) -> types.ElicitRequestFormParams:
    """Return the form that shows the call, its arguments, its effect class and why it is asked."""
    arguments = json.dumps(question.arguments, indent=2, sort_keys=True)
    if len(arguments) > _SHOWN_CHARACTERS:
        arguments = f"{arguments[:_SHOWN_CHARACTERS]}… ({len(arguments)} characters)"
    message = (
        f"skillbank wants to call {question.tool} once. Effect: {question.effect.value}.\n"
        f"You are asked because: {question.reason}\nArguments:\n{arguments}"
    )
    schema = {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "May it be called?",
                "enum": [answer.value for answer in choices],
            }
        },
        "required": ["decision"],
    }
    return types.ElicitRequestFormParams(message=message, requested_schema=schema)


def parse_answer(result: object) -> Answer | None:
    """Return what a person chose; None when they dismissed the form or it is not a filled one."""
    match result:
        case types.ElicitResult(action="decline"):
            return Answer.NO
        case types.ElicitResult(action="accept", content={"decision": str(chosen)}) if chosen in set(Answer):
            return Answer(chosen)
        case _:
            return None


def question_digest(question: ConsentQuestion) -> str:
    """Return the identity of a question: an answer counts for this call and no other."""
    return digest(
        {
            "server": question.tool.server,
            "tool": question.tool.tool,
            "arguments": question.arguments,
            "effect": question.effect.value,
        }
    )


def asking(ask: Ask) -> AskPerson:
    """Return how the person behind a call of 2026-07-28 is asked."""

    async def person(question: ConsentQuestion, choices: Sequence[Answer] = _NOW, /) -> Answer | None:
        form = types.ElicitRequest(params=consent_form(question, choices))
        answers = await ask(Questions({_ANSWER_KEY: form}, question_digest(question)))
        return parse_answer(answers.get(_ANSWER_KEY))

    return person


async def ask_nobody(question: ConsentQuestion, choices: Sequence[Answer] = (), /) -> Answer | None:
    """Return None: this client shows its user no forms."""
    del question, choices
    return None


async def elicit(
    session: ServerSession,
    request_id: types.RequestId | None,
    question: ConsentQuestion,
    choices: Sequence[Answer] = _NOW,
    /,
) -> Answer | None:
    """Ask in the middle of a handshake-era call."""
    form = consent_form(question, choices)
    try:
        result = await session.elicit_form(form.message, form.requested_schema, related_request_id=request_id)
    except MCPError as error:
        _LOG.warning("the client could not ask its user: %s", error)
        return None
    return parse_answer(result)
