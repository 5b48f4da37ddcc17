"""What is wrong with a server as it lists itself: before any of its tools is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from catalog.names import NAME_PATTERN
from catalog.schema import lint_schema, types
from catalog.tools import Annotations, Tool
from server.exploration.arguments import argument_schemas
from server.exploration.health.findings import Finding, finding_of

__all__ = ["listing_findings"]

_LONG_DESCRIPTION = 2_000
_WORDS_OF_PROTOCOL = 300


def listing_findings(
    tools: Sequence[Tool], problems: Sequence[str], quarantined: Mapping[str, str]
) -> list[Finding]:
    """Return what the listing shows.

    Args:
        tools: as listed.
        problems: what was noticed of the connection, in words.
        quarantined: tools that are listed and cannot be called, with the reason.
    """
    of_tools = [finding for tool in tools for finding in _of_tool(tool)]
    of_protocol = [finding_of("protocol", None, said[:_WORDS_OF_PROTOCOL]) for said in problems]
    unusable = [finding_of("quarantined", name, reason) for name, reason in quarantined.items()]
    empty = [] if tools else [finding_of("no-tools", None, "no tool of the listing can be called")]
    return [*of_tools, *of_protocol, *unusable, *empty]


def _of_tool(tool: Tool) -> Iterator[Finding]:
    name = tool.id.tool
    if not tool.description.strip():
        yield finding_of("no-description", name, "there is no description")
    if len(tool.description) > _LONG_DESCRIPTION:
        yield finding_of(
            "long-description", name, f"the description has {len(tool.description):,} characters"
        )
    if tool.annotations == Annotations():
        yield finding_of("no-annotations", name, "there are no annotations")
    if not NAME_PATTERN.fullmatch(name):
        yield finding_of("strict-hosts", name, f"hosts refuse the name {name[:80]!r}")
    for said in lint_schema(tool.input_schema):
        yield finding_of("strict-hosts", name, f"input schema {said}")
    if tool.output_schema and tool.output_schema.get("type") != "object":
        yield finding_of("strict-hosts", name, "the output schema is no object at the top")
    for argument, schema in argument_schemas(tool).items():
        if not types(schema) or not schema.keys() - {"$schema", "title", "description", "default"}:
            yield finding_of(
                "untyped-argument", name, f"argument {argument!r} has no type", argument=argument
            )
