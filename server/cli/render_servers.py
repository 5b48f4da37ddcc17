"""Draws servers for a person: how they are, what their tools do, what would be started."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from catalog.effects import Effect, Reset
from server.cli.answers import (
    AddedServer,
    InitReport,
    InputsReport,
    LoginReport,
    LogoutReport,
    ResetCheckReport,
)
from server.cli.render import plain, table
from server.cli.render_models import render_local_models
from server.host_files import ImportPlan
from server.onboarding import ServerProposal
from server.reports import DoctorReport, EffectsReport, LabelsReport, ModelReport, ServerReport
from server.reset_trial import ResetTrial

__all__ = [
    "render_added",
    "render_doctor",
    "render_effects",
    "render_init",
    "render_inputs",
    "render_labels",
    "render_login",
    "render_logout",
    "render_plan",
    "render_proposal",
    "render_reset_check",
    "render_trial",
]

_EFFECT_STYLE = {
    Effect.PURE: "green",
    Effect.READ: "green",
    Effect.WRITE: "yellow",
    Effect.UNKNOWN: "red",
}
_UNTRIED = "not tried: skillbank effects verify"
_STATUS_STYLE = {"ok": "green", "problems": "yellow", "unreachable": "red", "idle": "dim"}
_NAMED_AT_MOST = 5


def render_doctor(console: Console, report: DoctorReport) -> None:
    """Draw the answer of `doctor`."""
    for title, path in (("config", report.config), ("store", report.store)):
        console.print(Text.assemble((f"{title}  ", "dim"), plain(path or "none")), soft_wrap=True)
    if report.servers:
        drawn = table(
            "server", "status", "transport", "protocol", "tools", "annotated", "classified", "reset", "s"
        )
        for server in report.servers:
            drawn.add_row(
                plain(server.name, "bold"),
                Text(server.status, _STATUS_STYLE[server.status]),
                server.transport,
                plain(server.era or "-"),
                str(server.tools),
                str(server.annotated),
                str(server.classified),
                server.reset.value,
                f"{server.seconds:.1f}",
            )
        console.print(drawn)
    else:
        console.print("no servers: take some over with skillbank init, or add one with skillbank add")
    if report.models:
        console.print(_models(report.models))
    for model in report.models:
        if model.problem is not None:
            line = Text.assemble(plain(model.model, "bold"), ": ", plain(model.problem))
            console.print(line, soft_wrap=True)
    for server in report.servers:
        _render_server(console, server)
    render_local_models(console, report.local_models)
    for problem in report.problems:
        console.print(plain(problem, "yellow"), soft_wrap=True)


def _models(models: tuple[ModelReport, ...]) -> Table:
    drawn = table("model", "status", "roles", "structured answers", "context")
    for model in models:
        drawn.add_row(
            plain(model.model, "bold"),
            Text("ok", "green") if model.usable else Text("unusable", "red"),
            ", ".join(model.roles),
            plain(model.offers or "-"),
            str(model.context_tokens or "-"),
        )
    return drawn


def _render_server(console: Console, server: ServerReport) -> None:
    def say(text: str, style: str = "") -> None:
        console.print(Text.assemble(plain(server.name, "bold"), ": ", plain(text, style)), soft_wrap=True)

    for problem in server.problems:
        say(problem)
    for tool, reason in server.quarantined.items():
        say(f"tool {tool!r} is quarantined: {reason}", "yellow")
    for change in server.changes:
        say(f"its tools are not what they were: {change}", "yellow")
    for error in server.last_errors:
        at = datetime.fromtimestamp(error.at, UTC).astimezone().isoformat(" ", "seconds")
        say(f"{at}, {error.tool} failed ({error.kind}): {error.message}", "dim")
    if server.strict_hosts:
        named = [f"{tool} ({', '.join(why[:2])})" for tool, why in server.strict_hosts.items()]
        more = len(named) - _NAMED_AT_MOST
        rest = f" and {more} more" if more > 0 else ""
        count = f"{len(named)} of {server.tools} tools"
        say(f"a strict host would refuse {count}: {'; '.join(named[:_NAMED_AT_MOST])}{rest}", "dim")


def render_effects(console: Console, report: EffectsReport) -> None:
    """Draw effect classes with where they come from, and the reset mode of each server."""
    drawn = table("tool", "class", "why")
    for effect in report.effects:
        drawn.add_row(
            plain(f"{effect.server}/{effect.tool}"),
            Text(effect.effect.value, _EFFECT_STYLE[effect.effect]),
            plain(effect.reason, "dim"),
        )
    if report.effects:
        console.print(drawn)
    else:
        console.print("no tools are known yet: skillbank doctor asks the servers", style="dim")
    for server, mode in sorted(report.reset.items()):
        tried = report.reset_checks.get(server)
        told = tried or ("" if mode is Reset.NONE else f"{_UNTRIED} {server}")
        line = Text.assemble(plain(server), f"  reset: {mode.value}")
        if told:
            line.append_text(Text.assemble("  (", plain(told, "dim"), ")"))
        console.print(line, soft_wrap=True)


def render_labels(console: Console, report: LabelsReport) -> None:
    """Draw what tools do with information, and the flows that are granted."""
    drawn = table("tool", "label", "why")
    for tool in report.tools:
        for label, why in tool.labels.items():
            drawn.add_row(plain(f"{tool.server}/{tool.tool}"), label.value, plain(why, "dim"))
    if drawn.row_count:
        console.print(drawn)
    else:
        console.print("no known tool has a label", style="dim")
    for source, sinks in sorted(report.flows.items()):
        console.print(
            Text.assemble("granted: ", plain(source), " → ", plain(", ".join(sinks))), soft_wrap=True
        )


def render_trial(console: Console, trial: ResetTrial) -> None:
    """Draw the calls that a trial of a reset mode would make."""
    console.print(Text.assemble("fresh processes of ", plain(trial.spec.name, "bold"), " would be called:"))
    for title, calls in (("write", trial.writes), ("read", trial.reads)):
        for call in calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            console.print(Text.assemble(f"  {title}  ", plain(call.tool), " ", plain(arguments, "dim")))


def render_reset_check(console: Console, report: ResetCheckReport) -> None:
    """Draw what came of trying a reset mode."""
    style = {"holds": "green", "refuted": "red", "undecided": "yellow"}[report.verdict]
    console.print(
        Text.assemble(
            plain(report.server, "bold"),
            f": {report.mode.value} ",
            (report.verdict, style),
            plain(f": {report.why}"),
        ),
        soft_wrap=True,
    )
    if report.withdrawn:
        console.print(
            "it was configured and is withdrawn: the server counts as not resettable", style="yellow"
        )


def render_proposal(console: Console, proposal: ServerProposal) -> None:
    """Draw what the tools of a server are thought to do, each with its reason."""
    console.print(Text.assemble("\n", plain(proposal.server, "bold"), f", {len(proposal.effects)} tools"))
    drawn = table("tool", "class", "why")
    for effect in proposal.effects:
        drawn.add_row(
            plain(effect.tool),
            Text(effect.effect.value, _EFFECT_STYLE[effect.effect]),
            plain(effect.reason, "dim"),
        )
    console.print(drawn)
    console.print(
        Text.assemble(f"reset: {proposal.reset.value}  ", plain(proposal.reset_reason, "dim")), soft_wrap=True
    )


def render_plan(console: Console, plan: ImportPlan) -> None:
    """Draw what each server would start, before anything is started."""
    if plan.servers:
        drawn = table("server", "would start", "from")
        for server in plan.servers:
            off = " (disabled)" if server.spec.disabled else ""
            asks = ", ".join(str(each["id"]) for each in server.inputs)
            drawn.add_row(
                plain(server.spec.name, "bold"),
                plain(f"{server.spec.launch}{off}{f' (asks for {asks})' if asks else ''}"),
                plain(server.file.path, "dim"),
            )
        console.print(drawn)
    for skipped in plan.skipped:
        console.print(
            Text.assemble(
                "skipped ",
                plain(skipped.name, "bold"),
                " of ",
                plain(f"{skipped.file.path}: {skipped.reason}"),
            ),
            soft_wrap=True,
        )


def render_added(console: Console, added: AddedServer) -> None:
    """Draw the answer of `add`."""
    known = sum(effect.effect != "unknown" for effect in added.effects) if added.kept else 0
    reset = added.reset if added.kept else Reset.NONE
    console.print(
        Text.assemble(
            "added ",
            plain(added.server, "bold"),
            f": {len(added.tools)} tools, {known} classified, reset {reset.value}",
        ),
        soft_wrap=True,
    )
    if reset is not Reset.NONE:
        console.print(
            Text.assemble("  reset is ", plain(f"{_UNTRIED} {added.server}", "dim")), soft_wrap=True
        )
    for problem in added.problems:
        console.print(Text.assemble("  ", plain(problem, "yellow")), soft_wrap=True)


def render_inputs(console: Console, report: InputsReport) -> None:
    """Draw the inputs that servers ask for."""
    if not report.inputs:
        console.print("the configuration asks for no inputs", style="dim")
        return
    drawn = table("input", "answered", "asked by", "question")
    for asked in report.inputs:
        drawn.add_row(
            plain(asked.id, "bold"),
            Text("yes", "green") if asked.answered else Text("no", "red"),
            plain(", ".join(asked.servers) or "nobody"),
            plain(asked.description, "dim"),
        )
    console.print(drawn)
    console.print(Text.assemble("answers are kept in ", plain(report.kept_in)), soft_wrap=True)


def render_login(console: Console, report: LoginReport) -> None:
    """Draw the answer of `login`."""
    said = {
        "logged_in": "you are logged in",
        "already": "you were logged in already",
        "open": "it lets anybody in: there is nothing to log in to",
    }[report.status]
    kept = "" if report.status == "open" or report.kept_in is None else f"; tokens are in {report.kept_in}"
    console.print(Text.assemble(plain(report.server, "bold"), f": {said}", plain(kept)), soft_wrap=True)


def render_logout(console: Console, report: LogoutReport) -> None:
    """Draw the answer of `logout`."""
    revoked = "and the server took its tokens back" if report.revoked else "the server was not told"
    said = f"the login is forgotten, {revoked}" if report.was_logged_in else "nobody was logged in"
    console.print(Text.assemble(plain(report.server, "bold"), f": {said}"), soft_wrap=True)


def render_init(console: Console, report: InitReport) -> None:
    """Draw the answer of `init`."""
    for added in report.imported:
        render_added(console, added)
    if report.imported:
        console.print(Text.assemble("in ", plain(report.config)), soft_wrap=True)
    elif not report.planned:
        console.print("nothing to take over; add a server with: skillbank add NAME -- COMMAND ARGS")
