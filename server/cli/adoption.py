"""What `add` and `init` share: classes for the tools of new servers, given, taken or left unknown.

A person is asked once for all of them. Where nobody can be asked the tools stay unknown, and the
output says how to change that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import JsonValue

from catalog.config import parse_profile, read_document, with_effects, with_pins, with_reset, without_profile
from catalog.effects import EffectTable, Reset
from server.cli.answers import AddedServer
from server.cli.options import EXISTING
from server.cli.render_servers import render_proposal
from server.cli.session import Session
from server.onboarding import Probed, ServerProposal, pins_of, propose_profile
from server.reports import ToolEffect

__all__ = ["Adopted", "Choice", "adopt", "effects_option", "yes_option"]

yes_option = click.option("--yes", "-y", is_flag=True, help="Take what is proposed without asking.")
effects_option = click.option(
    "--effects",
    "effects_file",
    type=EXISTING,
    metavar="FILE",
    help='Classes instead of the proposal: {"effects": {SERVER: {TOOL: CLASS}}, "reset": {SERVER: MODE}}.',
)


@dataclass(frozen=True, slots=True)
class Choice:
    """How the classes of new tools are chosen, as the command line says."""

    take_proposal: bool
    effects_file: Path | None


@dataclass(frozen=True, slots=True)
class Adopted:
    """The changed configuration document, and what became of each server."""

    document: dict[str, JsonValue]
    servers: tuple[AddedServer, ...]


def adopt(
    session: Session, probed: Sequence[Probed], document: dict[str, JsonValue], choice: Choice
) -> Adopted:
    """Return the document with the classes of these servers' tools chosen.

    Raises:
        ConfigError: the file of classes is wrong; names file, line and key.
    """
    given = None if choice.effects_file is None else parse_profile(read_document(choice.effects_file))
    proposals = [
        propose_profile(server)
        if given is None
        else _given_profile(server, given, f"given by {choice.effects_file}")
        for server in probed
    ]
    kept = given is not None or _is_taken(session, proposals, choice)
    for server, proposal in zip(probed, proposals, strict=True):
        document = without_profile(document, server.name)
        if kept:
            document = _with_profile(document, proposal, server)
    servers = tuple(
        _added(server, proposal, kept=kept) for server, proposal in zip(probed, proposals, strict=True)
    )
    return Adopted(document, servers)


def _is_taken(session: Session, proposals: Sequence[ServerProposal], choice: Choice) -> bool:
    shown = [proposal for proposal in proposals if proposal.effects]
    if not shown:
        return True
    if not session.as_json:
        for proposal in shown:
            render_proposal(session.err, proposal)
    if choice.take_proposal:
        return True
    if session.interactive:
        return session.confirm("Keep these classes? Only pure and read tools are ever repeated.")
    session.say(
        "Nobody could be asked: the tools stay unknown, which is never repeated. Take the proposal with "
        "--yes (and --force for a server that is there), or say them with: "
        "skillbank effects set SERVER/TOOL CLASS"
    )
    return False


def _given_profile(server: Probed, given: EffectTable, reason: str) -> ServerProposal:
    effects = tuple(
        ToolEffect(server=server.name, tool=tool.id.tool, effect=given.effect(tool.id), reason=reason)
        for tool in server.tools
    )
    classes = given.effects.get(server.name, {})
    return ServerProposal(server.name, effects, given.reset_mode(server.name), reason, classes)


def _with_profile(
    document: dict[str, JsonValue], proposal: ServerProposal, server: Probed
) -> dict[str, JsonValue]:
    if proposal.classes:
        document = with_effects(document, proposal.server, proposal.classes, replace=True)
        table = EffectTable(effects={proposal.server: proposal.classes})
        document = with_pins(document, proposal.server, pins_of(server.tools, table))
    if proposal.reset is not Reset.NONE:
        document = with_reset(document, proposal.server, proposal.reset)
    return document


def _added(server: Probed, proposal: ServerProposal, *, kept: bool) -> AddedServer:
    return AddedServer(
        server=server.name,
        tools=tuple(tool.id.tool for tool in server.tools),
        effects=proposal.effects,
        reset=proposal.reset,
        kept=kept,
        written=True,
        problems=server.problems,
    )
