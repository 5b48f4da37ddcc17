"""Episodes and their formats: what is learned, what is stripped, what is redacted, who gets which credit."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from server.training.credit import credited
from server.training.errors import NothingToExport, SourceUnreadable
from server.training.export import ExportOptions, export_episodes
from server.training.formats import dpo_rows, grpo_rows, sft_rows
from server.training.from_drives import episodes_of_drive, read_drive
from server.training.from_traces import Seen, episodes_of, read_record
from server.training.grouping import family_of, split_of
from server.training.launching import rows_file
from server.training.stripping import stripped
from server.training.trainer.versions import problem_of
from skills_store.redaction import Redactor
from tests.training.runs import EXPERIENCE, SECRET, WEATHER, drive, seen, snapshot, trace


def test_a_run_is_told_as_turns_of_which_those_of_the_model_are_learned():
    right = episodes_of(seen(("Paris",)), snapshot())[0]
    assert [turn.role for turn in right.messages] == ["user", *["assistant", "tool"] * 2, "assistant"]
    assert right.trained == (1, 3, 5)
    assert right.messages[1].tool_calls[0].function.arguments == {"city": "Paris"}
    assert [(step.node, step.label, step.messages) for step in right.steps] == [
        ("n0", "good", (1,)),
        ("n1", "good", (3, 5)),
    ]
    assert right.provenance.simulated


def test_scores_are_never_made_up():
    scores = [one.outcome.score for one in episodes_of(seen(("Paris",)), snapshot())]
    assert scores == [1.0, 0.0, None]


def test_advantages_are_the_papers_over_the_runs_that_were_scored():
    right, wrong, unjudged = credited(episodes_of(seen(("Paris",)), snapshot()), alpha=0.15)
    # Labels GG and B: the mean is 0 and the deviation 1; outcomes 1 and 0 are 1 and -1.
    assert [step.advantage for step in right.steps] == pytest.approx([1.3, 1.15])
    assert [step.advantage for step in wrong.steps] == pytest.approx([-1.15])
    assert [step.advantage for step in unjudged.steps] == [None]


def test_experience_is_stripped_by_its_span_and_only_in_what_is_learned_from():
    (guided,) = episodes_of_drive(drive(right=True, guided=True), "d.json")
    (plain,) = episodes_of_drive(drive(right=True, guided=False), "d.json")
    assert guided.guided
    assert EXPERIENCE in guided.messages[1].content
    assert stripped(guided).messages == plain.messages
    assert stripped(guided).trained == plain.trained
    assert guided.group == plain.group


def test_a_drive_keeps_what_the_model_said_and_labels_it_by_what_it_was_told():
    (wrong,) = episodes_of_drive(drive(right=False, guided=True), "d.json")
    assert [(step.label, step.reason) for step in wrong.steps] == [
        ("bad", "it failed: no such city"),
        ("bad", "the drive ended by: steps"),
    ]
    assert not wrong.provenance.simulated


def test_pairs_fork_at_a_turn_of_the_model_and_hold_no_answer_of_a_tool():
    (row,) = dpo_rows(episodes_of(seen(("Paris",)), snapshot()))
    assert [turn["role"] for turn in (*row["chosen"], *row["rejected"])] == ["assistant"] * 2
    assert row["chosen"] != row["rejected"]
    assert [turn["role"] for turn in row["prompt"]] == ["user"]


def test_only_right_runs_are_imitated_and_only_runs_with_credit_are_replayed():
    episodes = credited(episodes_of(seen(), snapshot()))
    assert [row["episode"] for row in sft_rows(episodes)] == [
        f"trace:{city}-right" for city in ("Paris", "Rome", "Oslo")
    ]
    rows = grpo_rows(episodes)
    assert len(rows) == 6
    for row in rows:
        roles = [turn["role"] == "assistant" for turn in row["completion"]]
        assert row["trained"] == roles
        assert [bool(value) for value in row["advantages"]] == roles


def test_no_secret_and_no_experience_reaches_a_file_for_a_trainer():
    run = trace(
        "secret", (WEATHER, {"city": SECRET}, {"sky": SECRET}), right=True, task=f"Use {SECRET} for Paris."
    )
    episodes = [*episodes_of([Seen(run)], snapshot())]
    for right in (True, False):
        episodes += episodes_of_drive(drive(right=right, guided=True), "d.json")
    exported = export_episodes(episodes, ExportOptions(test_share=0.0), Redactor().redact)
    assert not [path for path, content in exported.files.items() if SECRET.encode() in content]
    holds = [path for path, content in exported.files.items() if EXPERIENCE.encode() in content]
    assert holds == ["episodes.jsonl"]
    lines = [json.loads(line) for line in exported.files["episodes.jsonl"].splitlines()]
    span = lines[1]["experience"][0]
    assert lines[1]["messages"][span["message"]]["content"][span["start"] : span["end"]] == f"\n{EXPERIENCE}"


def test_a_family_is_in_one_split_and_stays_there():
    assert family_of("Convert 5 miles to 'km'.") == family_of("Convert 70 miles to 'feet'.")
    splits = [split_of(family_of(f"Task {chr(97 + i)}{chr(110 + i)}"), 0.5) for i in range(12)]
    assert set(splits) == {"train", "test"}
    assert {split_of("any", 0.0)} == {"train"}


def test_a_mask_that_points_at_no_turn_of_the_model_cannot_be_built():
    episode = episodes_of(seen(("Paris",)), snapshot())[0]
    with pytest.raises(ValidationError, match="0 is no turn of the model"):
        type(episode).model_validate(episode.model_dump() | {"trained": (0,), "steps": ()})


def test_bad_sources_are_told_by_place_and_remedy(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{", "utf-8")
    with pytest.raises(SourceUnreadable, match="no report of a drive"):
        read_drive(broken)
    with pytest.raises(SourceUnreadable, match="is no record of a search"):
        read_record(broken)
    with pytest.raises(SourceUnreadable, match=r"has no grpo\.train\.jsonl"):
        rows_file(tmp_path, "grpo")
    with pytest.raises(NothingToExport, match="nothing can be exported"):
        export_episodes([], ExportOptions(), Redactor().redact)


@pytest.mark.parametrize(
    ("found", "said"), [("1.17.0", "trl 1.17.0 is not one this was tried with"), ("1.16.2", None)]
)
def test_only_releases_whose_hooks_are_known_are_used(found, said):
    versions = {"torch": "2.13.0+cpu", "trl": found, "transformers": "5.24.0", "datasets": "5.2.1"}
    problem = problem_of(versions.__getitem__)
    assert (problem is None) == (said is None)
    assert (problem or "").startswith(said or "")
