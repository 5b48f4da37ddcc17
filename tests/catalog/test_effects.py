"""`decide`, cell by cell against the Effects table of the contracts."""

from __future__ import annotations

import pytest

from catalog.effects import Activity, Effect, EffectTable, Reset, Verdict, decide
from catalog.tools import ToolId

FREE = (Effect.PURE, Effect.READ)
COSTLY = (Effect.WRITE, Effect.UNKNOWN)
RESETTABLE = (Reset.PROCESS, Reset.PROCESS_DIRS)

TABLE = {
    Activity.CLIENT_CALL: (Verdict.RUN, Verdict.RUN, Verdict.RUN),
    Activity.FIRST_RUN: (Verdict.RUN, Verdict.ISOLATE, Verdict.ASK),
    Activity.RERUN: (Verdict.RUN, Verdict.ISOLATE, Verdict.REFUSE),
    Activity.REPLAY: (Verdict.RUN, Verdict.ISOLATE, Verdict.REFUSE),
    Activity.RETRY: (Verdict.RUN, Verdict.ISOLATE, Verdict.REFUSE),
}
"""Per activity: free; costly on a resettable server; costly otherwise."""


@pytest.mark.parametrize("activity", list(Activity))
def test_the_table_has_a_row_for_every_activity(activity: Activity):
    assert activity in TABLE


@pytest.mark.parametrize("effect", FREE)
@pytest.mark.parametrize("activity", list(Activity))
def test_a_free_tool_of_a_server_without_reset_always_runs(activity: Activity, effect: Effect):
    assert decide(effect, Reset.NONE, activity).verdict is TABLE[activity][0]


@pytest.mark.parametrize("reset", RESETTABLE)
@pytest.mark.parametrize("effect", COSTLY)
@pytest.mark.parametrize("activity", list(Activity))
def test_a_costly_tool_of_a_resettable_server_runs_in_its_own_process(
    activity: Activity, effect: Effect, reset: Reset
):
    assert decide(effect, reset, activity).verdict is TABLE[activity][1]


@pytest.mark.parametrize("effect", COSTLY)
@pytest.mark.parametrize("activity", list(Activity))
def test_a_costly_tool_without_reset_never_repeats(activity: Activity, effect: Effect):
    assert decide(effect, Reset.NONE, activity).verdict is TABLE[activity][2]


@pytest.mark.parametrize("reset", RESETTABLE)
def test_reads_of_a_resettable_server_see_the_state_of_their_own_process(reset: Reset):
    for activity in set(Activity) - {Activity.CLIENT_CALL}:
        assert decide(Effect.READ, reset, activity).verdict is Verdict.ISOLATE


@pytest.mark.parametrize("reset", RESETTABLE)
def test_a_pure_tool_needs_a_process_of_its_own_only_where_it_is_replayed(reset: Reset):
    verdicts = {activity: decide(Effect.PURE, reset, activity).verdict for activity in Activity}
    isolated = {activity for activity, verdict in verdicts.items() if verdict is Verdict.ISOLATE}
    assert isolated == {Activity.REPLAY}


@pytest.mark.parametrize("effect", COSTLY)
def test_consent_allows_the_first_run_and_no_other(effect: Effect):
    allowed = {a for a in Activity if decide(effect, Reset.NONE, a, consented=True).verdict is Verdict.RUN}
    assert allowed == {Activity.CLIENT_CALL, Activity.FIRST_RUN}


@pytest.mark.parametrize("effect", COSTLY)
@pytest.mark.parametrize("reset", list(Reset))
@pytest.mark.parametrize("activity", list(Activity))
def test_an_answer_of_a_costly_tool_never_stands_in_for_a_call(
    activity: Activity, reset: Reset, effect: Effect
):
    assert not decide(effect, reset, activity).memoise


def test_reads_are_memoised_except_when_retried_and_in_a_process_of_their_own():
    assert decide(Effect.READ, Reset.NONE, Activity.RERUN).memoise
    assert not decide(Effect.READ, Reset.NONE, Activity.RETRY).memoise
    assert not decide(Effect.READ, Reset.PROCESS, Activity.RERUN).memoise
    assert decide(Effect.PURE, Reset.PROCESS, Activity.RERUN).memoise


@pytest.mark.parametrize("reset", list(Reset))
@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("activity", list(Activity))
def test_every_decision_gives_its_reason(activity: Activity, effect: Effect, reset: Reset):
    assert decide(effect, reset, activity).reason


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        pytest.param(ToolId("db", "query"), Effect.READ, id="an exact name wins"),
        pytest.param(ToolId("db", "get_rows"), Effect.PURE, id="a longer pattern wins"),
        pytest.param(ToolId("db", "drop"), Effect.WRITE, id="a star takes the rest"),
        pytest.param(ToolId("other", "query"), Effect.UNKNOWN, id="an unconfigured server"),
    ],
)
def test_the_effect_table_takes_the_closest_pattern(tool: ToolId, expected: Effect):
    patterns = {"*": Effect.WRITE, "get_*": Effect.PURE, "query": Effect.READ, "q*": Effect.PURE}
    assert EffectTable(effects={"db": patterns}).effect(tool) is expected


def test_a_standing_consent_covers_only_its_patterns():
    table = EffectTable(allow={"db": ("insert_*",)})
    assert table.allows(ToolId("db", "insert_row"))
    assert not table.allows(ToolId("db", "drop_table"))
    assert not table.allows(ToolId("other", "insert_row"))


@pytest.mark.parametrize(
    ("tool", "pattern"),
    [("get", "get"), ("get_one", "get_*"), ("get_all_of_it", "get_all*"), ("put", "*"), ("got", "g?t")],
)
def test_an_exact_name_wins_and_then_the_longest_pattern(tool: str, pattern: str):
    names = ("*", "g?t", "get", "get_*", "get_all*")
    table = EffectTable(effects={"s": dict.fromkeys(names, Effect.READ)})
    assert table.pattern(ToolId("s", tool)) == pattern
    assert table.pattern(ToolId("t", tool)) is None
