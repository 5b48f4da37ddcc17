"""Snapshots merge into samples: every reply once, longer timelines absorb those they begin with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from server.context.messages import spoken
from server.context.snapshots import Snapshot, merge_snapshots

ASKED = (spoken("system", "rules", "instruction"), spoken("user", "task", "user"))


def grown(count: int, first: tuple = ASKED) -> list[Snapshot]:
    """Return the snapshots of a conversation that only grew."""
    made, messages = [], first
    for number in range(1, count + 1):
        made.append(Snapshot(messages, f"step {number}", step=number))
        messages = (
            *messages,
            spoken("assistant", f"step {number}", "model"),
            spoken("user", f"r{number}", "tool"),
        )
    return made


def test_a_conversation_that_only_grew_is_one_sample_with_every_reply():
    [sample] = merge_snapshots(grown(3))
    assert [sample.messages[i].text for i in sample.trained] == ["step 1", "step 2", "step 3"]
    assert sample.steps == (1, 2, 3)
    assert all(sample.messages[i].author == "model" for i in sample.trained)


def test_a_rewritten_context_forks_a_sample():
    first = grown(2)
    rewritten = (*ASKED, spoken("user", "[result r1 cleared]", "tool"))
    samples = merge_snapshots([*first, Snapshot(rewritten, "step 3", step=3)])
    assert [sample.steps for sample in samples] == [(1, 2), (3,)]


def test_a_reply_that_only_tidies_is_not_learned():
    tidy = Snapshot(ASKED, '[{"id": "r1"}]', is_trainable=False)
    samples = merge_snapshots([tidy, *grown(1)])
    assert [sample.trained for sample in samples] == [(), (2,)]


def test_other_tools_keep_timelines_apart_only_where_asked():
    one, two = grown(2)
    other = Snapshot(two.messages, two.reply, ({"name": "x"},), step=2)
    assert len(merge_snapshots([one, other])) == 1
    assert len(merge_snapshots([one, other], ignore_tools=False)) == 2


@given(st.lists(st.integers(0, 3), max_size=5), st.integers(1, 6))
def test_every_reply_is_in_exactly_one_sample(cuts: list[int], count: int):
    snapshots, number = [], 0
    for cut in [*cuts, 0]:
        base = (*ASKED, *(spoken("user", f"cleared {i} {cut}", "tool") for i in range(cut)))
        for one in grown(count, base):
            number += 1
            snapshots.append(Snapshot(one.messages, one.reply, step=number))
    steps = sorted(step for sample in merge_snapshots(snapshots) for step in sample.steps if step is not None)
    unique = {(tuple((m.role, m.text) for m in s.messages), s.reply) for s in snapshots}
    assert len(steps) == len(unique)


def test_equal_requests_have_one_digest():
    assert grown(2)[1].digest == grown(3)[1].digest
    assert grown(2)[0].digest != grown(2)[1].digest
