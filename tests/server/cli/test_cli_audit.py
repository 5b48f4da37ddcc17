"""`skillbank audit` and `skills restore`: what a person is shown, and what JSON holds."""

from __future__ import annotations

import pytest

from server.bank.errors import NotDecided
from server.reports import SkillReport
from server.reports.audit import (
    AuditReport,
    BudgetReport,
    ContrastReport,
    GrowthReport,
    MergeSuggestion,
    RateReport,
    RetentionReport,
    SavedPerUse,
    SkillStanding,
    StepTaken,
)

RATE = RateReport(right=2, of=14, low=0.04, high=0.4)
STANDING = SkillStanding(
    name="to_f",
    version=1,
    state="active",
    utility=0.19,
    at_least=0.04,
    unasked=RATE,
    asked=RateReport(right=1, of=3, low=0.0, high=0.9),
    faults={"check_failed": 12},
    contrast=ContrastReport(
        guided=RATE,
        withheld=RateReport(right=3, of=3, low=0.4, high=1.0),
        before=RateReport(right=2, of=2, low=0.3, high=1.0),
        delta=-0.86,
        evidence=42.0,
        needed=100.0,
        paper_delta=-0.86,
        paper_would_suppress=True,
    ),
    tokens_saved=None,
    calls_saved=SavedPerUse(mean=2.0, low=1.5, high=2.5),
    seconds_saved=None,
    suspicion="its last 2 uses failed (check_failed)",
    due="audit: its last 2 uses failed (check_failed)",
    held=False,
    not_compared="",
    audited_at=None,
    unused_days=0.5,
    notes=("marginal",),
)
REPORT = AuditReport(
    dry_run=False,
    skills=(STANDING,),
    taken=(
        StepTaken(
            skill="to_f", version=1, step="restrict", reason="it harms", undo="skillbank skills restore to_f"
        ),
    ),
    merge=(MergeSuggestion(keep="a", merge="b", why="they are one"),),
    growth=GrowthReport(
        skills=1,
        versions=2,
        by_state={"active": 1},
        uses=17,
        traces=20,
        recorded_calls=4,
        episodes=19,
        audits=1,
        bytes=2_000_000,
        versions_in_30_days=1,
        skills_in_30_days=0,
    ),
    retention=RetentionReport(runs=3, recorded_calls=1),
    budget=BudgetReport(
        active=1, most_active=500, megabytes=0.01, most_megabytes=64.0, to_guidance=("old_one",)
    ),
)


def test_an_audit_shows_standing_steps_and_growth(cli):
    cli.bank.answers["audit"] = REPORT
    ran = cli("audit")
    assert ran.code == 0
    for said in (
        "2/14 (4% to 40%), 3 asked for",
        "42 of 100",
        "the paper's rule would suppress it",
        "to_f@1 restrict: it harms  (undo: skillbank skills restore to_f)",
        "b could be one with a: they are one",
        "2 versions, 1 of the last 30 days",
        "old_one are guidance only: over the budget",
        "forgotten as too old: 3 runs, 1 recorded calls",
    ):
        assert said in " ".join(ran.out.split()) or said in ran.out, ran.out


def test_an_audit_of_an_empty_bank_says_so(cli):
    cli.bank.answers["audit"] = REPORT.model_copy(update={"skills": ()})
    assert "no skill is in use yet" in cli("audit").out


def test_an_audit_in_json_holds_everything(cli):
    cli.bank.answers["audit"] = REPORT
    assert cli("audit", "--json").json == REPORT.model_dump(mode="json")


@pytest.mark.parametrize("dry", [True, False])
def test_names_and_dry_run_are_passed_on(cli, dry):
    cli.bank.answers["audit"] = REPORT
    cli("audit", "to_f", *(["--dry-run"] if dry else []))
    ((asked, names, *rest),) = cli.bank.asked
    assert (asked, names) == ("audit", ("to_f",))
    assert rest == [("dry_run", dry)]


def test_restore_tells_where_it_is_now_or_why_not(cli):
    cli.bank.answers["restore"] = SkillReport(name="to_f", version=1, state="active", reason="restored")
    assert cli("skills", "restore", "to_f").out == "to_f version 1 is active: restored\n"
    cli.bank.answers["restore"] = NotDecided("to_f@1 is active: nothing to take back")
    ran = cli("skills", "restore", "to_f")
    assert (ran.code, ran.err) == (1, "skillbank: to_f@1 is active: nothing to take back\n")
