"""Episodes of runs, and the files that are made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot as expected

from server.training.credit import credited
from server.training.episode import Episode, EpisodeStep, ExperienceSpan, Outcome, Provenance, Turn
from server.training.errors import NothingToExport, SourceUnreadable
from server.training.export import Exported, ExportOptions, export_episodes
from server.training.from_drives import episodes_of_drive, read_drive
from server.training.from_traces import Seen, episodes_of, read_record
from server.training.grouping import family_of, split_of
from server.training.stripping import stripped
from skills_store.redaction import Redactor
from tests.training.runs import EXPERIENCE, SECRET, WEATHER, drive, seen, snapshot, trace

UNTRAINED = {
    "index": 0,
    "messages": [2],
    "node": "n",
    "label": "bad",
    "label_source": "judge",
    "reward": -1,
}


def plain(value: Any) -> Any:
    return value


def rows(exported: Exported, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported.files[path].decode().splitlines()]


def exported_runs(**options: Any) -> Exported:
    return export_episodes(episodes_of(seen(), snapshot()), ExportOptions(test_share=0, **options), plain)


def run_of(name: str, rewards: list[int], score: float | None) -> Episode:
    """Return a run of one task with a turn and an answer per step."""
    turns = [Turn(role="user", content="go")]
    steps: list[EpisodeStep] = []
    for index, reward in enumerate(rewards):
        label = "good" if reward > 0 else "bad"
        steps.append(
            EpisodeStep(
                index=index,
                messages=(len(turns),),
                node=f"n{index}",
                label=label,
                label_source="execution",
                reward=reward,
            )
        )
        turns += [Turn(role="assistant", content=f"do {index}"), Turn(role="tool", content="done", name="t")]
    return Episode(
        id=name,
        group="g",
        family="f",
        task="go",
        tools=(),
        messages=tuple(turns),
        trained=tuple(step.messages[0] for step in steps),
        steps=tuple(steps),
        outcome=Outcome(status="verified" if score else "failed", score=score),
        provenance=Provenance(source="trace", id=name),
    )


def test_advantages_of_a_group_are_those_of_the_worked_example():
    group = [
        run_of("a", [1, 1], 1),
        run_of("b", [1, -1], 1),
        run_of("c", [-1, -1], 0),
        run_of("d", [-1, 1], 0),
    ]
    found = [[step.advantage for step in one.steps] for one in credited(group, 0.15)]
    flat = [[1.3, 1.15], [1.0, 0.85], [-1.3, -1.15], [-1.0, -0.85]]
    assert [pytest.approx(one, abs=1e-6) for one in flat] == found


def test_a_group_that_varies_in_nothing_has_no_advantages():
    group = [run_of("a", [1, 1], 1), run_of("b", [1, 1], 1)]
    assert {step.advantage for one in credited(group) for step in one.steps} == {None}


def test_a_run_that_nobody_judged_has_no_advantages_and_does_not_count_as_wrong():
    group = [run_of("a", [1], 1), run_of("b", [-1], 0), run_of("c", [1], None)]
    found = credited(group)
    assert [one.steps[0].advantage is None for one in found] == [False, False, True]
    assert credited(group[:2]) == found[:2]


def test_a_trace_is_told_with_a_mask_labels_and_its_answers():
    told = next(one for one in episodes_of(seen(("Paris",)), snapshot()) if one.id == "trace:Paris-right")
    assert [(turn.role, turn.name, bool(turn.tool_calls)) for turn in told.messages] == expected(
        [
            ("user", None, False),
            ("assistant", None, True),
            ("tool", "travel__get_weather", False),
            ("assistant", None, True),
            ("tool", "travel__book_seat", False),
            ("assistant", None, False),
        ]
    )
    assert told.trained == (1, 3, 5)
    assert [(step.node, step.label, step.label_source, step.messages) for step in told.steps] == [
        ("n0", "good", "execution", (1,)),
        ("n1", "good", "execution", (3, 5)),
    ]
    assert told.provenance.simulated


def test_runs_of_one_task_share_prompt_and_tools_and_tell_failures():
    told = {one.id: one for one in episodes_of(seen(("Paris",)), snapshot())}
    right, wrong = told["trace:Paris-right"], told["trace:Paris-wrong"]
    assert (right.group, right.tools, right.messages[:1]) == (wrong.group, wrong.tools, wrong.messages[:1])
    assert wrong.steps[0].label == "bad"
    assert wrong.messages[2].content.startswith("Error: ")


def test_a_trace_without_a_task_is_not_told():
    one = trace("x", (WEATHER, {"city": "Paris"}, 1), right=True, task="")
    assert episodes_of([Seen(one)], snapshot()) == []


def test_a_guided_drive_without_its_experience_is_the_drive_that_had_none():
    [guided] = episodes_of_drive(drive(right=True, guided=True), "d.json")
    [bare] = episodes_of_drive(drive(right=True, guided=False), "d.json")
    [span] = guided.experience
    assert guided.messages[span.message].content[span.start : span.end].strip() == EXPERIENCE
    assert stripped(guided).messages == bare.messages
    assert stripped(guided).trained == bare.trained
    assert stripped(guided).steps == bare.steps


def test_only_replies_of_a_driven_model_are_learned_and_each_is_labelled():
    [right] = episodes_of_drive(drive(right=True, guided=False), "d.json")
    [wrong] = episodes_of_drive(drive(right=False, guided=False), "d.json")
    assert right.trained == (2, 4)
    assert [right.messages[i].role for i in right.trained] == ["assistant", "assistant"]
    assert [step.label for step in right.steps] == ["good", "good"]
    assert [step.label for step in wrong.steps] == ["bad", "bad"]
    assert not right.provenance.simulated
    assert right.group == wrong.group


def test_guided_and_unguided_drives_of_one_task_are_one_group():
    [guided] = episodes_of_drive(drive(right=True, guided=True), "d.json")
    [bare] = episodes_of_drive(drive(right=False, guided=False), "e.json")
    assert guided.group == bare.group
    for one in credited([guided, bare]):
        assert all((step.advantage or 0) * (1 if one.outcome.score else -1) > 0 for step in one.steps)


def test_a_message_that_was_only_experience_goes_and_indices_move_along():
    run = run_of("a", [1, -1], 1)
    told = (Turn(role="user", content=EXPERIENCE), *run.messages)
    moved = tuple(
        step.model_copy(update={"messages": (step.messages[0] + 1,), "advantage": 1.0}) for step in run.steps
    )
    guided = run.model_copy(
        update={
            "messages": told,
            "trained": tuple(i + 1 for i in run.trained),
            "steps": moved,
            "experience": (ExperienceSpan(message=0, start=0, end=len(EXPERIENCE), unit="u"),),
        }
    )
    bare = stripped(guided)
    assert bare.messages == run.messages
    assert bare.trained == run.trained
    assert [step.messages for step in bare.steps] == [step.messages for step in run.steps]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("trained", [0], "no turn of the model"),
        ("trained", [9], "no turn of the model"),
        ("experience", [{"message": 0, "start": 0, "end": 99, "unit": "u"}], "outside of message 0"),
        ("steps", [UNTRAINED], "not among the trained"),
    ],
)
def test_an_episode_that_points_at_nothing_cannot_be_read(field: str, value: Any, problem: str):
    document = run_of("a", [1], 1).model_dump(mode="json") | {field: value}
    with pytest.raises(ValueError, match=problem):
        Episode.model_validate(document)


def test_the_files_of_an_export_and_what_is_in_them():
    exported = exported_runs()
    assert exported.report.rows == expected(
        {"episodes.jsonl": 9, "trl/sft.train.jsonl": 3, "trl/dpo.train.jsonl": 3, "trl/grpo.train.jsonl": 6}
    )
    assert [Episode.model_validate(row) for row in rows(exported, "episodes.jsonl")]
    assert {row["episode"] for row in rows(exported, "trl/sft.train.jsonl")} == {
        f"trace:{city}-right" for city in ("Paris", "Rome", "Oslo")
    }


def test_calls_of_different_shapes_keep_their_own_arguments_and_no_nulls():
    [row, *_] = rows(exported_runs(), "trl/sft.train.jsonl")
    calls = [message["tool_calls"][0]["function"] for message in row["messages"] if "tool_calls" in message]
    assert [call["arguments"] for call in calls] == [{"city": "Paris"}, {"seat": 4, "name": "Ann"}]
    assert [tool["function"]["name"] for tool in row["tools"]] == ["travel__book_seat", "travel__get_weather"]


def test_a_preference_pair_is_two_turns_after_one_prompt():
    [row, *_] = rows(exported_runs(), "trl/dpo.train.jsonl")
    assert [one["role"] for one in row["prompt"]] == ["user"]
    [chosen], [rejected] = row["chosen"], row["rejected"]
    assert chosen["tool_calls"][0]["function"]["arguments"] == {"city": "Paris"}
    assert rejected["tool_calls"][0]["function"]["arguments"] == {"city": "PARIS"}


def test_rows_for_grpo_have_an_advantage_and_a_mask_for_each_message():
    for row in rows(exported_runs(), "trl/grpo.train.jsonl"):
        assert len(row["advantages"]) == len(row["trained"]) == len(row["completion"])
        assert row["trained"] == [one["role"] == "assistant" for one in row["completion"]]
        assert all(bool(a) == t for a, t in zip(row["advantages"], row["trained"], strict=True))
        assert all((a > 0) == (row["reward"] == 1) for a in row["advantages"] if a)


def test_experience_is_in_the_master_alone_and_the_rest_says_that_it_guided():
    reports = (drive(right=True, guided=True), drive(right=False, guided=False))
    episodes = [one for report in reports for one in episodes_of_drive(report, "d.json")]
    exported = export_episodes(episodes, ExportOptions(test_share=0), plain)
    holding = {path for path, content in exported.files.items() if EXPERIENCE.encode() in content}
    assert holding == {"episodes.jsonl"}
    assert [row["guided"] for row in rows(exported, "trl/grpo.train.jsonl")] == [True, False]


def test_secrets_are_in_no_file_and_spans_hold_the_same_words():
    report = drive(right=True, guided=True)
    text = report.model_dump_json().replace("Tell the weather", f"Use {SECRET}, tell the weather")
    moved = json.loads(text)
    for shot in moved["drive"]["snapshots"]:
        span = shot["messages"][1]["spans"][0]
        by = len(f"Use {SECRET}, tell the weather") - len("Tell the weather")
        span.update(start=span["start"] + by, end=span["end"] + by)
    secret = trace("s", (WEATHER, {"city": f"token {SECRET}"}, SECRET), right=True, task=f"Use {SECRET}.")
    episodes = [
        *episodes_of_drive(type(report).model_validate(moved), "d.json"),
        *episodes_of([Seen(secret)], snapshot()),
    ]
    exported = export_episodes(episodes, ExportOptions(test_share=0), Redactor().redact)
    assert not [path for path, content in exported.files.items() if SECRET.encode() in content]
    [told, _] = (Episode.model_validate(row) for row in rows(exported, "episodes.jsonl"))
    [span] = told.experience
    assert told.messages[span.message].content[span.start : span.end].strip() == EXPERIENCE


def test_half_a_character_in_an_answer_does_not_stop_an_export():
    one = trace("x", (WEATHER, {"city": "Paris"}, "cut \ud83d"), right=True, task="Look.")
    exported = export_episodes(
        episodes_of([Seen(one)], snapshot()), ExportOptions(test_share=0), Redactor().redact
    )
    assert rows(exported, "episodes.jsonl")[0]["messages"][2]["content"] == "cut ?"


def test_no_family_is_in_two_splits_and_a_split_does_not_change_as_the_bank_grows():
    families = [family_of(f"Task {'x' * i} of a kind") for i in range(200)]
    assert 5 < sum(split_of(one, 0.1) == "test" for one in families) < 40
    assert family_of("Get the log of 'a/b' for 3 days") == family_of("Get the log of 'c' for 14 days")
    exported = export_episodes(episodes_of(seen(), snapshot()), ExportOptions(test_share=0.5), plain)
    told = [Episode.model_validate(row) for row in rows(exported, "episodes.jsonl")]
    by_family = {one.family: {other.split for other in told if other.family == one.family} for one in told}
    assert all(len(splits) == 1 for splits in by_family.values())


def test_the_card_counts_what_there_is_and_says_what_is_simulated_and_whose_licence():
    card = exported_runs(licences={"travel": "CC-BY-4.0"}).files["README.md"].decode()
    assert "| right | 3 |" in card
    assert "| wrong | 3 |" in card
    assert "Simulated: 9 of 9 episodes" in card
    assert "| travel | CC-BY-4.0 | 9 |" in card


def test_nothing_to_export_says_what_helps():
    with pytest.raises(NothingToExport, match="repair --record"):
        export_episodes([], ExportOptions(), plain)


@pytest.mark.parametrize("content", ["", "{", '{"status": 1}', "[]"], ids=["empty", "cut", "foreign", "list"])
def test_a_file_that_is_no_drive_and_no_record_is_refused_by_name(tmp_path: Path, content: str):
    path = tmp_path / "broken.json"
    path.write_text(content)
    with pytest.raises(SourceUnreadable, match=r"broken\.json"):
        read_drive(path)
    with pytest.raises(SourceUnreadable, match=r"broken\.json"):
        read_record(path)
