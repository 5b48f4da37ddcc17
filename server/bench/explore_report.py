"""What the explore benchmark found, server by server, and its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from server.bench.explore_credit import CreditMeasured

__all__ = ["ExploreBenchReport", "HeldOutCase", "ServerExplored", "render_explore_report"]


class HeldOutCase(BaseModel):
    """One held-out instance and how both banks fared with it."""

    model_config = ConfigDict(frozen=True)

    task: str
    tools: tuple[str, ...]
    """Of the reference, in order."""
    skill: str
    """State of the skill that its task made, empty where it made none."""
    before: str
    """Status that the bank ended with which has seen nothing."""
    after: str
    route: str
    """Of the bank that explored."""
    reasons: tuple[str, ...] = ()
    """Why that route was taken."""


class ServerExplored(BaseModel):
    """One server. `problem` says why nothing of it was measured."""

    model_config = ConfigDict(frozen=True)

    server: str
    set_aside: bool = False
    """Whether its defects were written down before exploring ever ran on it."""
    tools: int = 0
    called: int = 0
    pairs: int = 0
    joined: int = 0
    calls: int = 0
    drafts: int = 0
    dropped: dict[str, int] = Field(default_factory=dict[str, int])
    """Drafts that became no task, by reason."""
    kept: int = 0
    resolved: int = 0
    """Kept tasks whose reference passed its check again in another fresh process."""
    remarks: tuple[str, ...] = ()
    """The tools in order of references that did not at once, and why."""
    warts: int = 0
    """Known defects, without the easy ones."""
    found: int = 0
    easy: int = 0
    """Known defects that nearly every server has, or that its listing alone shows."""
    easy_found: int = 0
    missed: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Rules of all findings, so that one can see what else was found."""
    skills: int = 0
    lessons: int = 0
    held_out: int = 0
    before: int = 0
    """Held-out instances solved by a bank that has seen nothing."""
    after: int = 0
    """The same by a bank that explored and learned from the other instances."""
    direct: int = 0
    """Of these, by a skill and without a plan."""
    cases: tuple[HeldOutCase, ...] = ()
    """The held-out instances, one by one."""
    labelled: int = 0
    """Steps that both ablation and execution label."""
    agreed: int = 0
    credit: CreditMeasured = CreditMeasured()
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the model that planned held-out instances, 0 without one."""
    seconds: float = 0.0
    problem: str | None = None


class ExploreBenchReport(BaseModel):
    """Answer of `bench explore`."""

    model_config = ConfigDict(frozen=True)

    bench: Literal["explore"] = "explore"
    quick: bool
    budget_calls: int
    """Per server."""
    seed: int
    planner: str = "deterministic"
    versions: dict[str, str] = Field(default_factory=dict[str, str])
    servers: tuple[ServerExplored, ...]
    model: str | None = None
    """Who planned held-out instances of the part below, None: nobody was asked."""
    with_model: tuple[ServerExplored, ...] = ()
    """A part of the servers explored anew and solved with the model."""
    seconds: float = 0.0

    def total(self, of: Callable[[ServerExplored], int]) -> int:
        """Return the sum over all servers that were measured."""
        return sum(of(server) for server in self.servers)


def render_explore_report(report: ExploreBenchReport) -> str:
    """Return the table of the report as Markdown."""
    size = "Quick size. " if report.quick else ""
    head = (
        f"{size}{len(report.servers)} real servers, at most {report.budget_calls} calls each, seed"
        f" {report.seed}, planner: {report.planner}. Held-out instances are never learned from. Servers set"
        " aside are marked *.\n\n"
        "| server | tools called | pairs joined | calls | drafts | kept | solve again | defects found |"
        " skills | lessons | before | after | direct | labels agree | seconds |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    rows = "".join(_row(server) for server in report.servers)
    told = "".join(f"- {s.server}: not measured: {s.problem}\n" for s in report.servers if s.problem)
    remarks = [(s.server, why) for s in report.servers for why in s.remarks]
    told += "".join(f"- {server}: solved again: {why}\n" for server, why in remarks)
    missed = "".join(f"- {s.server}: missed {told}\n" for s in report.servers for told in s.missed)
    easy, easy_found = report.total(lambda s: s.easy), report.total(lambda s: s.easy_found)
    if easy:
        told += f"- beside these, {easy_found} of {easy} known defects that a listing or any call shows\n"
    return f"{head}{rows}{_sum(report)}\n{told}{missed}\n{_gained(report)}\n{_credited(report)}"


def _gained(report: ExploreBenchReport) -> str:
    return _worth(report) + _with_model(report)


def _worth(report: ExploreBenchReport) -> str:
    """Return what exploring and learning changed, in points of held-out success."""
    held, before, after = _success(report.servers)
    if not held:
        return "No task had instances to hold out.\n"
    return (
        f"Held-out success: {before / held:.1%} before, {after / held:.1%} after exploring and learning:"
        f" {100 * (after - before) / held:+.1f} points.\n"
    )


def _with_model(report: ExploreBenchReport) -> str:
    """Return what changed where a model plans, on the servers it was asked about."""
    if report.model is None:
        return "No model planned: `--model` adds a part where one does.\n"
    head = "| server | before | after | tokens before | tokens after |\n|---|---:|---:|---:|---:|\n"
    rows = "".join(
        f"| {one.server} | {one.before}/{one.held_out} | {one.after}/{one.held_out} | {one.tokens_before}"
        f" | {one.tokens_after} |\n"
        for one in report.with_model
    )
    held, before, after = _success(report.with_model)
    gained = f"{100 * (after - before) / held:+.1f} points" if held else "nothing to solve"
    return (
        f"\nThe same with {report.model} planning, each server explored anew:\n\n{head}{rows}\n"
        f"{before}/{held} before, {after}/{held} after: {gained}.\n"
    )


def _success(servers: Sequence[ServerExplored]) -> tuple[int, int, int]:
    """Return held-out instances, and how many were solved before and after."""
    return (
        sum(one.held_out for one in servers),
        sum(one.before for one in servers),
        sum(one.after for one in servers),
    )


def _credited(report: ExploreBenchReport) -> str:
    """Return the table of attribution in evolution, over all servers."""
    credit = sum((server.credit for server in report.servers), CreditMeasured())
    if not credit.plans:
        return "No reference could be damaged.\n"
    means = [f"{n / credit.both:.1f}" if credit.both else "–" for n in _candidates(credit)]
    return (
        f"Attribution in evolution, simulated: {credit.plans} references of kept tasks, damaged, repaired by"
        " the ladder.\n\n"
        "| attribution | repaired | candidates to success, mean over those both repaired |\n"
        "|---|---:|---:|\n"
        f"| off | {credit.solved_without}/{credit.plans} | {means[0]} |\n"
        f"| on | {credit.solved_with}/{credit.plans} | {means[1]} |\n\n"
        f"With it {credit.fewer} took fewer candidates, {credit.more} more,"
        f" {credit.both - credit.fewer - credit.more} as many.\n"
    )


def _candidates(credit: CreditMeasured) -> tuple[int, int]:
    return credit.candidates_without, credit.candidates_with


def _row(one: ServerExplored) -> str:
    mark = "*" if one.set_aside else ""
    warts = f"{one.found}/{one.warts}" if one.set_aside else "–"
    return (
        f"| {one.server}{mark} | {one.called}/{one.tools} | {one.joined}/{one.pairs} | {one.calls}"
        f" | {one.drafts} | {one.kept} | {one.resolved}/{one.kept} | {warts} | {one.skills} | {one.lessons}"
        f" | {one.before}/{one.held_out} | {one.after}/{one.held_out} | {one.direct}"
        f" | {one.agreed}/{one.labelled} | {one.seconds:.0f} |\n"
    )


def _sum(report: ExploreBenchReport) -> str:
    total = report.total
    return (
        f"| all | {total(lambda s: s.called)}/{total(lambda s: s.tools)}"
        f" | {total(lambda s: s.joined)}/{total(lambda s: s.pairs)} | {total(lambda s: s.calls)}"
        f" | {total(lambda s: s.drafts)} | {total(lambda s: s.kept)}"
        f" | {total(lambda s: s.resolved)}/{total(lambda s: s.kept)}"
        f" | {total(lambda s: s.found)}/{total(lambda s: s.warts)} | {total(lambda s: s.skills)}"
        f" | {total(lambda s: s.lessons)} | {total(lambda s: s.before)}/{total(lambda s: s.held_out)}"
        f" | {total(lambda s: s.after)}/{total(lambda s: s.held_out)} | {total(lambda s: s.direct)}"
        f" | {total(lambda s: s.agreed)}/{total(lambda s: s.labelled)}"
        f" | {sum(server.seconds for server in report.servers):.0f} |\n"
    )
