"""The one mapping from errors to what a client is told.

A model can act on a typed error of ours, so it becomes an error result that names the next step.
Anything else is logged, and the client learns only that it happened: no exception text, path or
stack of ours leaves the process.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from typing import Final, Literal, get_args

import mcp.types as types
from mcp import MCPError
from pydantic import JsonValue

from catalog.errors import CatalogError, ConfigError, SchemaRejected, ServerUnavailable
from catalog.plain_text import plain_text
from server.backends.errors import BackendError
from server.bank.errors import BankError
from server.exploration.errors import ExplorationError
from server.surface.remedies import render_fault
from skills_store.errors import (
    IllegalTransition,
    MalformedWorkflow,
    StoreError,
    StoreUnusable,
    UnknownSkill,
    VersionConflict,
)

__all__ = [
    "ERROR_CODES",
    "ERROR_META_KEY",
    "ErrorCode",
    "Refusal",
    "error_result",
    "failure_result",
    "render_error",
    "unknown_tool",
]

_LOG = logging.getLogger(__name__)
_LONGEST_NAME = 200

ERROR_META_KEY: Final = "io.skillbank/error"
"""Key under which the `_meta` of an error result has its code."""
ErrorCode = Literal[
    "invalid_arguments",
    "malformed_workflow",
    "unknown_skill",
    "unknown_id",
    "conflict",
    "refused",
    "not_approved",
    "run_failed",
    "model_failed",
    "server_unavailable",
    "not_set_up",
    "internal",
]
"""What an error result is about, for a program; its text is for a model."""
ERROR_CODES: Final[tuple[ErrorCode, ...]] = get_args(ErrorCode)


class Refusal(types.CallToolResult):
    """In place of a result: the protocol error that a call comes to; it is raised, never sent."""

    code: int
    data: JsonValue = None

    @classmethod
    def of(cls, error: MCPError) -> Refusal:
        """Return the refusal that says so."""
        text = types.TextContent(type="text", text=error.message)
        return cls(content=[text], is_error=True, code=error.code, data=error.data)

    @property
    def error(self) -> MCPError:
        """What is raised."""
        said = "".join(block.text for block in self.content if isinstance(block, types.TextContent))
        return MCPError(self.code, said, self.data)


def error_result(text: str, code: ErrorCode = "refused") -> types.CallToolResult:
    """Return the result that tells a model its call failed, and a program by its `_meta` how."""
    meta: dict[str, JsonValue] = {ERROR_META_KEY: code}
    content = [types.TextContent(type="text", text=text)]
    return types.CallToolResult.model_validate({"content": content, "isError": True, "_meta": meta})


def failure_result(error: Exception, tool: str) -> types.CallToolResult:
    """Return what a client is told of an error that a use case raised; log what it is not told."""
    code, text = _told(error, tool)
    return error_result(text, code)


def unknown_tool(name: str, listed: Iterable[str]) -> MCPError:
    """Return the protocol error for a tool that is not listed, with those that are called alike."""
    alike = difflib.get_close_matches(name, listed, n=3)
    perhaps = f" Perhaps {' or '.join(alike)}." if alike else ""
    return MCPError(
        types.INVALID_PARAMS,
        f"Unknown tool: {plain_text(name, _LONGEST_NAME)}.{perhaps}"
        " tools/list has every tool; find_skills searches the skills.",
    )


def render_error(error: Exception, tool: str) -> str:
    """Return the words in which a client is told of an error; log what it is not told."""
    return _told(error, tool)[1]


def _told(error: Exception, tool: str) -> tuple[ErrorCode, str]:
    match error:
        case MalformedWorkflow():
            lines = ["The workflow is malformed.", *(f"- {render_fault(f)}" for f in error.faults)]
            return "malformed_workflow", "\n".join(lines)
        case UnknownSkill():
            return "unknown_skill", f"{str(error).rstrip('. ')}. find_skills lists what there is."
        case VersionConflict():
            return "conflict", (
                "Someone else changed the skill meanwhile. Look at it again with describe_skill, then retry."
            )
        case BackendError():
            return "model_failed", str(error)
        case BankError() | IllegalTransition() | SchemaRejected() | ExplorationError():
            return "refused", str(error)
        case ServerUnavailable():
            _LOG.warning("%s: %s", tool, error)
            return (
                "server_unavailable",
                f"Tool server {error.server} is not reachable now. Try again later.",
            )
        case ConfigError() | StoreUnusable() | CatalogError() | StoreError():
            _LOG.error("%s: %s", tool, error)
            return "not_set_up", (
                "skillbank is not set up right; its log says what is wrong. `skillbank doctor` shows it."
            )
        case _:
            _LOG.error("%s failed", tool, exc_info=error)
            return "internal", f"{tool} failed inside skillbank; its log has the details."
