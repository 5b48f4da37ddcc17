"""Workflows drawn as Mermaid."""

from __future__ import annotations

from inline_snapshot import snapshot

from catalog.tools import ToolId
from skills_store.workflow.mermaid import render_mermaid
from skills_store.workflow.model import Node, SkillRef, Workflow


def test_edges_carry_data_or_order_and_labels_cannot_break_out():
    workflow = Workflow(
        name="w",
        inputs={"type": "object", "properties": {"a": {"type": "number"}}},
        nodes=(
            Node(id="first", tool=ToolId('s"]; click x', "t<b>"), arguments={"x": "$inputs.a"}),
            Node(
                id="second",
                skill=SkillRef(name="other", version=2),
                arguments={"y": "$nodes.first.output"},
                for_each="$nodes.first.output#/list",
            ),
            Node(id="third", tool=ToolId("s", "t"), after=("second",), when="$inputs.a"),
        ),
        outputs={"z": "$nodes.third.output"},
    )
    assert render_mermaid(workflow) == snapshot("""\
flowchart TD
  in_(["a"])
  n_first["first · s#quot;]; click x/t#lt;b#gt;"]
  n_second["second · skill other@2 · for each"]
  n_third["third · s/t · when"]
  out_(["z"])
  in_ --> n_first
  n_first --> n_second
  n_second -.-> n_third
  in_ --> n_third
  n_third --> out_
""")


def test_a_workflow_without_inputs_and_outputs_is_its_nodes():
    workflow = Workflow(
        name="w", inputs={"type": "object"}, nodes=(Node(id="only", tool=ToolId("s", "t")),), outputs={}
    )
    assert render_mermaid(workflow) == 'flowchart TD\n  n_only["only · s/t"]\n'
