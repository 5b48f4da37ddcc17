"""The one mapping from errors to what a client is told.

A model can act on a typed error of ours, so it becomes an error result that names the next step.
Anything else is logged, and the client learns only that it happened: no exception text, path or
stack of ours leaves the process.
"""

from __future__ import annotations

import logging

import mcp.types as types
from mcp import MCPError

from catalog.errors import CatalogError, ConfigError, SchemaRejected, ServerUnavailable
from server.backends.errors import BackendError
from server.bank.errors import BankError
from server.surface.remedies import render_fault
from skills_store.errors import (
    IllegalTransition,
    MalformedWorkflow,
    StoreError,
    StoreUnusable,
    UnknownSkill,
    VersionConflict,
)

__all__ = ["error_result", "render_error", "unknown_tool"]

_LOG = logging.getLogger(__name__)


def error_result(text: str) -> types.CallToolResult:
    """Return the result that tells a model its call failed."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def unknown_tool(name: str) -> MCPError:
    """Return the protocol error for a tool that is not listed."""
    return MCPError(
        types.INVALID_PARAMS,
        f"Unknown tool: {name}. tools/list has every tool; find_skills searches the skills.",
    )


def render_error(error: Exception, tool: str) -> str:
    """Return what a client is told of an error that a use case raised; log what it is not told."""
    match error:
        case MalformedWorkflow():
            return "\n".join(["The workflow is malformed.", *(f"- {render_fault(f)}" for f in error.faults)])
        case UnknownSkill():
            return f"{str(error).rstrip('. ')}. find_skills lists what there is."
        case VersionConflict():
            return (
                "Someone else changed the skill meanwhile. Look at it again with describe_skill, then retry."
            )
        case BankError() | BackendError() | IllegalTransition() | SchemaRejected():
            return str(error)
        case ServerUnavailable():
            _LOG.warning("%s: %s", tool, error)
            return f"Tool server {error.server} is not reachable now. Try again later."
        case ConfigError() | StoreUnusable() | CatalogError() | StoreError():
            _LOG.error("%s: %s", tool, error)
            return "skillbank is not set up right; its log says what is wrong. `skillbank doctor` shows it."
        case _:
            _LOG.error("%s failed", tool, exc_info=error)
            return f"{tool} failed inside skillbank; its log has the details."
