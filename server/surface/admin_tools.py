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
    RemoveServer,
    ReviewSkill,
    RollBackSkill,
    SetEffect,
)
from server.surface.arguments import input_schema
from server.surface.calls import Attendance, ToolCall
from server.surface.failures import error_result, render_error
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
    return types.Tool(name=name, title=title, description=description, input_schema=schema, annotations=hints)


ADMIN_TOOLS: Mapping[str, types.Tool] = MappingProxyType({name: _tool(name) for name in ADMIN_ARGUMENTS})


async def answer_admin(bank: BankPort, call: ToolCall, attendance: Attendance) -> types.CallToolResult:
    """Return the result of a call of one of these tools; never raises but for cancellation."""
    try:
        return await _answer(bank, call, attendance)
    except Exception as error:
        return error_result(render_error(error, call.name))


async def _answer(bank: BankPort, call: ToolCall, attendance: Attendance) -> types.CallToolResult:
    admin = bank.admin
    match ADMIN_ARGUMENTS[call.name].model_validate(call.arguments):
        case AddServer() as wanted:
            return await _add(bank, wanted, attendance)
        case RemoveServer(name=name):
            await admin.remove_server(name)
            return data_result({"removed": name})
        case ReviewSkill(name=None):
            return data_result((await bank.review_queue()).model_dump(mode="json"))
        case ReviewSkill(name=str(name), version=version, decision="approve"):
            return data_result((await bank.approve(name, version)).model_dump(mode="json"))
        case ReviewSkill(name=str(name), version=version, decision="reject", reason=reason):
            said = reason or "rejected by a person"
            return data_result((await bank.reject(name, said, version)).model_dump(mode="json"))
        case ReviewSkill():
            return error_result("Say a decision, approve or reject, as the user said.")
        case RollBackSkill(name=name, version=version):
            return data_result((await bank.rollback(name, version)).model_dump(mode="json"))
        case SetEffect(server=server, tool=tool, effect=effect):
            await admin.set_effect(server, tool, Effect(effect))
            return data_result({"server": server, "tool": tool, "effect": effect})
        case other:
            raise AssertionError(f"no answer for {type(other).__name__}")


async def _add(bank: BankPort, wanted: AddServer, attendance: Attendance) -> types.CallToolResult:
    if bool(wanted.command) == bool(wanted.url):
        return error_result("Give either command or url.")
    what: dict[str, JsonValue] = {"url": wanted.url} if wanted.url else {"command": list(wanted.command)}
    why = "it starts this program on your machine" if wanted.command else "it sends calls to this address"
    question = ConsentQuestion(
        ToolId("skillbank", "add_server"), {"name": wanted.name, **what}, Effect.UNKNOWN, why
    )
    word = await attendance.consent.ask(question)
    if word is None:
        hint = " ".join(wanted.command) if wanted.command else f"--url {wanted.url}"
        return error_result(
            "Nobody could be asked, so nothing was started. The user can add it:"
            f" skillbank add {wanted.name} {'-- ' if wanted.command else ''}{hint}"
        )
    if not word:
        return error_result("The user said no: nothing was started.")
    report = await bank.admin.add_server(wanted.name, wanted.command, wanted.url)
    return data_result(report.model_dump(mode="json"))
