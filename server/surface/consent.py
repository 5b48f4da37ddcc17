"""Asks the person behind an MCP client whether a call that is not free may happen.

The question is one form in both protocol eras. Handshake-era sessions are asked in the middle of the
call; how a 2026-07-28 call waits for its answer between two requests is `suspension`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum

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
    NO = "refuse"


AskPerson = Callable[[ConsentQuestion], Awaitable[Answer | None]]
"""Shows a question to the person behind a client; None when nobody decided."""


class McpConsent:
    """Consent of the person behind one tool call; what they allow for a tool ends with that call."""

    def __init__(self, ask_person: AskPerson) -> None:
        self._ask_person = ask_person
        self._allowed: set[ToolId] = set()

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Return the person's word, or None when nobody can be asked."""
        if question.tool in self._allowed:
            return True
        answer = await self._ask_person(question)
        if answer is Answer.TOOL:
            self._allowed.add(question.tool)
        return None if answer is None else answer is not Answer.NO


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Return whether a client declared that it shows forms to its user."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None:
        return False
    return elicitation.form is not None or elicitation.url is None


def consent_form(question: ConsentQuestion) -> types.ElicitRequestFormParams:
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
                "enum": [answer.value for answer in Answer],
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

    async def person(question: ConsentQuestion) -> Answer | None:
        form = types.ElicitRequest(params=consent_form(question))
        answers = await ask(Questions({_ANSWER_KEY: form}, question_digest(question)))
        return parse_answer(answers.get(_ANSWER_KEY))

    return person


async def ask_nobody(question: ConsentQuestion) -> Answer | None:
    """Return None: this client shows its user no forms."""
    del question
    return None


async def elicit(
    session: ServerSession, request_id: types.RequestId | None, question: ConsentQuestion
) -> Answer | None:
    """Ask in the middle of a handshake-era call."""
    form = consent_form(question)
    try:
        result = await session.elicit_form(form.message, form.requested_schema, related_request_id=request_id)
    except MCPError as error:
        _LOG.warning("the client could not ask its user: %s", error)
        return None
    return parse_answer(result)
