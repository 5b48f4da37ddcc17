"""record list, show, prune; skills save; review."""

from __future__ import annotations

import pytest

from server.bank.errors import UnknownTrace
from server.reports import (
    RecordedCallReport,
    RecordingReport,
    RecordingsReport,
    ReviewItem,
    ReviewReport,
    SavedReport,
    SkillReport,
)
from skills_store.skill import AdmissionCheck, AdmissionVerdict

CALL = RecordedCallReport(
    number=1, tool="shop/get", arguments={"id": "A-1"}, outcome="succeeded", trace_id="t", seconds=0.1
)
FAILED = CALL.model_copy(update={"number": 2, "outcome": "failed", "detail": "no such order"})
TALK = RecordingReport(name="talk", calls=2, started_at=0.0, last_at=60.0, steps=(CALL, FAILED))
CHECK = AdmissionCheck(name="effects", gate="safety", passed=False, detail="leaves lasting effects")
SAVED = SavedReport(
    skill=SkillReport(name="status", version=1, state="proposed", reason="a person approves"),
    reason="a person approves",
    calls=1,
    verdict=AdmissionVerdict(state="proposed", reason="", checks=(CHECK,)),
)
ITEM = ReviewItem(
    name="status",
    version=2,
    reason="a person approves",
    description="Looks up.",
    replaces=1,
    diff="+ node get: shop/get",
    inputs_added=("id",),
    failed=(CHECK,),
    tests=("original",),
)


def test_recordings_are_listed_and_shown_with_numbers_and_what_failed(cli):
    cli.bank.answers = {"recordings": RecordingsReport(recordings=(TALK,)), "show_recording": TALK}
    assert "talk" in cli("record", "list").out
    shown = cli("record", "show", "talk").out
    assert "shop/get" in shown
    assert "no such order" in shown
    assert cli("record", "show", "talk", "--json").json["steps"][1]["number"] == 2


def test_an_unknown_recording_is_refused_with_the_banks_words(cli):
    cli.bank.answers = {"show_recording": UnknownTrace("no recording 'x' is kept")}
    ran = cli("record", "show", "x")
    assert (ran.code, "no recording 'x'" in ran.err) == (1, True)


def test_pruning_names_recordings_or_keeps_the_newest(cli):
    older = TALK.model_copy(update={"name": "older"})
    cli.bank.answers = {"recordings": RecordingsReport(recordings=(TALK, older)), "forget_recording": 2}
    assert cli("record", "prune", "--keep", "1", "--json").json == {"forgotten": {"older": 2}}
    assert cli("record", "prune", "talk", "--json").json == {"forgotten": {"talk": 2}}
    assert cli("record", "prune").code == cli("record", "prune", "talk", "--keep", "1").code == 2


def test_saving_passes_on_what_was_said_and_draws_what_it_came_to(cli):
    cli.bank.answers = {"save": SAVED}
    ran = cli(
        *("skills", "save", "status", "--recording", "talk", "--call", "1", "--input", "id=A-1"),
        *("--input", "n=3", "--task", "Where is A-1?", "--example", '{"id": "A-2"}'),
    )
    (_, request) = cli.bank.asked[0]
    assert (request.name, request.recording, request.calls) == ("status", "talk", (1,))
    assert (request.inputs, request.task) == ({"id": "A-1", "n": 3}, "Where is A-1?")
    assert request.examples == ({"id": "A-2"},)
    assert ran.code == 0
    assert "status version 1 is proposed" in ran.out
    assert "leaves lasting effects" in ran.out


@pytest.mark.parametrize(
    "options",
    [("--recording", "a", "--trace", "b"), ("--input", "no"), ("--call", "0"), ("--example", "[]")],
    ids=lambda options: options[0] + options[-1],
)
def test_saving_refuses_what_cannot_be_meant(cli, options):
    assert cli("skills", "save", "status", *options).code == 2


def test_nothing_saved_is_a_failure(cli):
    cli.bank.answers = {"save": SavedReport(skill=None, reason="not compilable: no outputs", calls=1)}
    ran = cli("skills", "save", "status")
    assert (ran.code, "not compilable" in ran.out) == (1, True)


class TestReview:
    def test_lists_what_waits_where_nobody_can_be_asked(self, cli):
        cli.bank.answers = {"review_queue": ReviewReport(waiting=(ITEM,))}
        ran = cli("review")
        assert ran.code == 0
        for told in ("status@2, would replace version 1", "a person approves", "+ node get", "+ inputs: id"):
            assert told in ran.out
        assert cli("review", "--json").json["waiting"][0]["name"] == "status"

    def test_of_a_name_that_does_not_wait_is_misuse(self, cli):
        cli.bank.answers = {"review_queue": ReviewReport(waiting=())}
        assert cli("review", "other").code == 2
        assert "nothing waits" in cli("review").out
