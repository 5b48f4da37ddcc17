"""What the foreign families of the stream benchmark found, as values and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

__all__ = ["Attempt", "ForeignLine", "ForeignReport", "ForeignWorldReport", "render_foreign"]

_CASES_TOLD = 4
_LONGEST_GIST = 90
_READING = """
- *recorded*: nothing the bank has did it, so the task's reference was played as a client's recorded session
  and saved under the family's name (*recorded reference*): no planner without a model plans these tasks
- *called with the values*: what a client with a model does when it chooses the family's skill and fills in
  its inputs; the values are those of the task's reference
- what is right is the word of the world's own checker
"""


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class Attempt(_Report):
    """One way a task was tried, and what the world's checker said of it."""

    ran: bool
    """False: the way was not open, and nothing was called."""
    right: bool = False
    detail: str = ""
    """Why it did not run, or the checker's word."""


class ForeignLine(_Report):
    """One task of the stream in a foreign world."""

    family: str
    task: str
    number: int
    """Of its family, from 1."""
    direct: Attempt
    """By its words, where a skill is this task's."""
    seeded: Attempt | None
    """By its words, from a plan that a like skill seeds; None: the direct way was right."""
    called: Attempt | None
    """The family's skill, called by name with this task's values at its inputs; None: there was no skill."""
    recorded: bool
    """Whether the reference did it, as a client's session, and was saved."""
    compiled: bool | None = None
    """Whether that session became a skill; None: nothing was recorded."""
    state: str | None = None
    """What the skill was admitted as; None where the session made no new version."""
    detail: str = ""
    """Admission's reason, or why nothing was compiled."""
    approved: bool = False
    """Whether a person's approval had to be played."""
    again: Attempt | None = None
    """The new skill on the values it was recorded with."""
    seconds: float = 0.0


class ForeignWorldReport(_Report):
    """The stream of one world."""

    world: str
    server: str
    families: tuple[str, ...]
    lines: tuple[ForeignLine, ...]


class ForeignReport(_Report):
    """The streams of all foreign worlds."""

    worlds: tuple[ForeignWorldReport, ...]
    missing: tuple[str, ...] = ()
    """Worlds that could not be had here, with why."""


def render_foreign(report: ForeignReport) -> str:
    """Return the tables as Markdown."""
    head = (
        "| world | family | tasks | recorded, compiled | admitted as | right on its own task |"
        " direct by words, right | seeded by words, right | called with the values, right |\n"
        "|---|---|---:|---:|---|---:|---:|---:|---:|\n"
    )
    rows = [
        _row(world.world, family, [line for line in world.lines if line.family == family])
        for world in report.worlds
        for family in world.families
    ]
    totals = [_row(world.world, "**all**", world.lines) for world in report.worlds]
    lines = [line for world in report.worlds for line in world.lines]
    notes = (
        f"{_READING}- approved by a person, played: {sum(line.approved for line in lines)} of"
        f" {sum(line.state is not None for line in lines)} new versions;"
        f" {sum(line.seconds for line in lines):.0f} s for {len(lines)} tasks\n"
    )
    cases = "".join(f"- {case}\n" for case in _cases(report.worlds))
    missing = "".join(f"- not measured: {what}\n" for what in report.missing)
    return head + "".join(rows) + "".join(totals) + notes + cases + missing


def _row(world: str, family: str, lines: Sequence[ForeignLine]) -> str:
    states = Counter(line.state for line in lines if line.state)
    told = [f"{count} {state}" for state, count in states.most_common()]
    recorded = [line for line in lines if line.recorded]
    known = sum(bool(line.compiled) and line.state is None for line in recorded)
    told += [f"{known} known already"] if known else []
    compiled = sum(bool(line.compiled) for line in recorded)
    direct = [line.direct for line in lines if line.direct.ran]
    seeded = [line.seeded for line in lines if line.seeded is not None and line.seeded.ran]
    return (
        f"| {world} | {family} | {len(lines)} | {len(recorded)}, {compiled} | {', '.join(told) or '–'} |"
        f" {_share([line.again for line in recorded])} | {_share(direct)} | {_share(seeded)} |"
        f" {_share([line.called for line in lines])} |\n"
    )


def _share(attempts: Sequence[Attempt | None]) -> str:
    made = [one for one in attempts if one is not None]
    return f"{sum(one.right for one in made)}/{len(made)}" if made else "0"


def _cases(worlds: Iterable[ForeignWorldReport]) -> Iterable[str]:
    """Yield what kept tasks from being right, the commonest first, with a case of each."""
    for world in worlds:
        for way in ("direct", "seeded", "called"):
            told: Counter[str] = Counter()
            case: dict[str, str] = {}
            for line in world.lines:
                attempt: Attempt | None = getattr(line, way)
                if attempt is None or attempt.right:
                    continue
                why = ("" if attempt.ran else "not open: ") + _gist(attempt.detail)
                told[why] += 1
                case.setdefault(why, line.task)
            if told:
                said = "; ".join(
                    f"{why} {count} ({case[why]})" for why, count in told.most_common(_CASES_TOLD)
                )
                yield f"{world.world}, {way}, not right: {said}"


def _gist(detail: str) -> str:
    """Return what a checker's word begins with, without the case it is about."""
    parts = [part for part in detail.split(": ") if len(part) <= _LONGEST_GIST]
    return ": ".join(parts[:2]) or detail[:_LONGEST_GIST]
