"""Recorded calls as a workflow: their order, and how little of it matters in the end."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.effects import Effect, EffectTable
from catalog.tools import ToolId
from server.compilation.recorded import Call, loosened, run_in_order, whole_output

EFFECTS = EffectTable({"shop": {"get": Effect.READ, "find": Effect.READ, "put": Effect.WRITE}})


def call(tool: str, output: Any = None, server: str = "shop", **arguments: Any) -> Call:
    return Call(ToolId(server, tool), arguments, {"ok": True} if output is None else output)


def test_calls_keep_their_order_and_their_literals_whatever_these_look_like():
    workflow, outputs = run_in_order(
        [call("get", id="$nodes.x.output"), call("put", text="{$item}"), call("put", text="b")], "r", EFFECTS
    )
    assert [(n.id, n.after) for n in workflow.nodes] == [("get", ()), ("put", ("get",)), ("put_2", ("put",))]
    assert workflow.nodes[0].arguments == {"id": "$$nodes.x.output"}
    assert workflow.nodes[1].arguments == {"text": "{{$item}"}
    assert [*outputs] == ["get", "put", "put_2"]
    assert workflow.outputs == {"ok": "$nodes.put_2.output#/ok"}


def test_a_question_asked_twice_with_one_answer_is_one_call_and_a_write_never_is():
    calls = [call("get", id=1), call("get", id=1), call("put", id=1), call("put", id=1)]
    workflow, _ = run_in_order(calls, "r", EFFECTS)
    assert [n.id for n in workflow.nodes] == ["get", "put", "put_2"]


def test_nothing_recorded_is_no_run():
    with pytest.raises(ValueError, match="without a successful call"):
        run_in_order([], "r", EFFECTS)


@pytest.mark.parametrize(
    ("value", "outputs"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": "$nodes.n.output#/a", "b": "$nodes.n.output#/b"}, id="keys"),
        pytest.param({"not a name": 1}, {"result": "$nodes.n.output"}, id="no-names"),
        pytest.param([1], {"result": "$nodes.n.output"}, id="list"),
        pytest.param({}, {"result": "$nodes.n.output"}, id="empty"),
    ],
)
def test_all_that_the_last_call_gave_is_given_on(value, outputs):
    assert whole_output("n", value) == outputs


class TestLoosened:
    def ordered(self, *calls: Call) -> list[tuple[str, tuple[str, ...]]]:
        workflow, _ = run_in_order(calls, "r", EFFECTS)
        return [(n.id, n.after) for n in loosened(workflow, EFFECTS).nodes]

    def test_what_nobody_reads_goes_unless_it_changed_something(self):
        assert self.ordered(call("find"), call("put"), call("get")) == [("put", ()), ("get", ("put",))]

    def test_writes_keep_their_order_on_one_server_and_not_between_two(self):
        assert self.ordered(call("put"), call("put", id=2), call("put", server="other")) == [
            ("put", ()),
            ("put_2", ("put",)),
            ("put_3", ()),
        ]
