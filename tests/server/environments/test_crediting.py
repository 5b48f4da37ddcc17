"""Labels and advantages of plain calls."""

from __future__ import annotations

from server.environments.crediting import Episode, MadeCall, group_advantages, label_calls


def call(tool: str, output: object, *, is_error: bool = False, **arguments: str) -> MadeCall:
    return MadeCall(tool, dict(arguments), output, is_error)  # pyright: ignore


def test_a_call_is_good_when_the_answer_stands_on_it_through_later_ones() -> None:
    calls = (
        call("find", {"id": "u77"}),
        call("weather", {"sky": "grey"}),
        call("order", {"total": 42.5}, user="u77"),
        call("order", {"total": 42.5}, user="u77"),
        call("pay", "no money", is_error=True),
    )
    labels = label_calls(Episode(calls, {"total": 42.5}, 1.0))
    assert [label.label for label in labels] == ["good", "bad", "good", "bad", "bad"]


def test_without_an_answer_to_follow_back_no_call_is_blamed_for_being_unread() -> None:
    labels = label_calls(Episode((call("move", None, to="a"), call("move", "done", to="b")), None, 1.0))
    assert [label.label for label in labels] == ["good", "good"]


def test_an_episode_without_calls_has_no_advantages_and_disturbs_no_other() -> None:
    right = Episode((call("find", 42.5),), 42.5, 1.0)
    wrong = Episode((call("find", "none", is_error=True),), "?", 0.0)
    found = group_advantages([right, Episode((), None, 0.0), wrong])
    assert found[1] == []
    assert found[0][0] > 0 > found[2][0]
