"""The tools that change what the bank stands on; only offered with `serve --admin`.

Adding a server starts a program on this machine: the person behind the client sees it and says yes,
or it is not added.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import mcp.types as types
from pydantic import JsonValue

from catalog.effects import Effect
from catalog.tools import ToolId
from server.execution.consent import ConsentQuestion
from server.surface.admin_arguments import (
    ADMIN_ARGUMENTS,
    AddServer,
    ExploreServer,
    RemoveServer,
    ReviewSkill,
    RollBackSkill,
    SetEffect,
)
from server.surface.arguments import input_schema
from server.surface.calls import Attendance, ToolCall
from server.surface.failures import error_result, failure_result
from server.surface.icons import TOOL_ICONS
from server.surface.port import BankPort
from server.surface.results import data_result

__all__ = ["ADMIN_TOOLS", "answer_admin"]

_DESCRIPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "add_server": (
            "Add a tool server",
            "Add a tool server: a command that starts it, or a url. The user is asked first. It is started"
            " once, and its tools are listed; what they do is unknown until set_effect says it.\n"
            'Example: {"name": "clock", "command": ["mcp-server-time"]}',
        ),
        "remove_server": (
            "Remove a tool server",
            "Take a tool server out of the configuration and end it. Skills that need it can no longer run.\n"
            'Example: {"name": "clock"}',
        ),
        "explore_server": (
            "Explore a tool server",
            "Explore a server nobody has tasks for: calls its tools that may repeat, in fresh processes,"
            " within a budget. Returns coverage, health findings, tasks with checked solutions and the"
            " skills made of them. The user is asked first. Takes minutes: start it with job.\n"
            'Example: {"name": "clock", "budget_calls": 120}',
        ),
        "review_skill": (
            "Review a skill",
            "List the proposed skills that wait for a person, or decide on one as the user said.\n"
            'Example: {"name": "tokyo_time", "decision": "approve"}',
        ),
        "roll_back_skill": (
            "Roll a skill back",
            "Make an earlier version of a skill the current one.\n"
            'Example: {"name": "tokyo_time", "version": 1}',
        ),
        "set_effect": (
            "Say what a tool does",
            "Say what a tool does to the world: pure, read, write or unknown. Only pure and read tools are"
            ' ever repeated.\nExample: {"server": "clock", "tool": "*", "effect": "read"}',
        ),
    }
)


def _tool(name: str) -> types.Tool:
    title, description = _DESCRIPTIONS[name]
    hints = types.ToolAnnotations(
        title=title, read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    schema = input_schema(ADMIN_ARGUMENTS[name])
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema=schema,
        icons=TOOL_ICONS,
        annotations=hints,
    )


ADMIN_TOOLS: Mapping[str, types.Tool] = MappingProxyType({name: _tool(name) for name in ADMIN_ARGUMENTS})


async def answer_admin(bank: BankPort, call: ToolCall, attendance: Attendance) -> types.CallToolResult:
    """Return the result of a call of one of these tools; never raises but for cancellation."""
    try:
        return await _answer(bank, call, attendance)
    except Exception as error:
        return failure_result(error, call.name)


async def _answer(bank: BankPort, call: ToolCall, attendance: Attendance) -> types.CallToolResult:
    admin = bank.admin
    match ADMIN_ARGUMENTS[call.name].model_validate(call.arguments):
        case AddServer() as wanted:
            return await _add(bank, wanted, attendance)
        case RemoveServer(name=name):
            await admin.remove_server(name)
            return data_result({"removed": name})
        case ExploreServer() as wanted:
            return await _explore(bank, wanted, attendance)
        case ReviewSkill(name=None):
            return data_result((await bank.review_queue()).model_dump(mode="json"))
        case ReviewSkill(name=str(name), version=version, decision="approve"):
            return data_result((await bank.approve(name, version)).model_dump(mode="json"))
        case ReviewSkill(name=str(name), version=version, decision="reject", reason=reason):
            said = reason or "rejected by a person"
            return data_result((await bank.reject(name, said, version)).model_dump(mode="json"))
        case ReviewSkill():
            return error_result("Say a decision, approve or reject, as the user said.", "invalid_arguments")
        case RollBackSkill(name=name, version=version):
            return data_result((await bank.rollback(name, version)).model_dump(mode="json"))
        case SetEffect(server=server, tool=tool, effect=effect):
            await admin.set_effect(server, tool, Effect(effect))
            return data_result({"server": server, "tool": tool, "effect": effect})
        case other:
            raise AssertionError(f"no answer for {type(other).__name__}")


async def _add(bank: BankPort, wanted: AddServer, attendance: Attendance) -> types.CallToolResult:
    if bool(wanted.command) == bool(wanted.url):
        return error_result("Give either command or url.", "invalid_arguments")
    what: dict[str, JsonValue] = {"url": wanted.url} if wanted.url else {"command": list(wanted.command)}
    why = "it starts this program on your machine" if wanted.command else "it sends calls to this address"
    question = ConsentQuestion(
        ToolId("skillbank", "add_server"), {"name": wanted.name, **what}, Effect.UNKNOWN, why
    )
    hint = " ".join(wanted.command) if wanted.command else f"--url {wanted.url}"
    by_hand = f"add it: skillbank add {wanted.name} {'-- ' if wanted.command else ''}{hint}"
    if (refused := await _refusal(question, attendance, by_hand)) is not None:
        return refused
    report = await bank.admin.add_server(wanted.name, wanted.command, wanted.url)
    return data_result(report.model_dump(mode="json"))


async def _refusal(
    question: ConsentQuestion, attendance: Attendance, by_hand: str
) -> types.CallToolResult | None:
    """Ask a person; None where the answer is yes.

    Args:
        question: what is about to be done.
        attendance: who can be asked.
        by_hand: what the user can do where nobody can be.
    """
    word = await attendance.consent.ask(question)
    if word is None:
        told = f"Nobody could be asked, so nothing was started. The user can {by_hand}"
        return error_result(told, "not_approved")
    return None if word else error_result("The user said no: nothing was started.", "not_approved")


async def _explore(bank: BankPort, wanted: ExploreServer, attendance: Attendance) -> types.CallToolResult:
    exploration = wanted.exploration()
    plan = await bank.plan_exploration(exploration)
    what: dict[str, JsonValue] = {
        "server": plan.server,
        "command": plan.command,
        "budget_calls": plan.budget_calls,
        "tools": [f"{tool.name} ({tool.effect})" for tool in plan.tools],
        "model": plan.model,
    }
    why = "it calls these tools of the server many times with made-up arguments"
    question = ConsentQuestion(ToolId("skillbank", "explore_server"), what, Effect.UNKNOWN, why)
    if refused := await _refusal(question, attendance, f"explore it: skillbank explore {plan.server}"):
        return refused
    report = await bank.explore(exploration, attendance.listener)
    return data_result(report.model_dump(mode="json"))
