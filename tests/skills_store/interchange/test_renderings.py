"""A skill drawn as Mermaid and written as Arazzo."""

from __future__ import annotations

import json

from inline_snapshot import snapshot

from catalog.tools import ToolId
from skills_store.interchange.arazzo import render_arazzo
from skills_store.interchange.mermaid import render_mermaid
from skills_store.interchange.portable import portable
from skills_store.workflow.model import Node
from tests.skills_store.conftest import make_skill


def two_steps():
    skill = make_skill()
    node = Node(
        id="end",
        tool=ToolId("units", 'con"vert'),
        arguments={
            "value": "$nodes.now.output#/temp_c",
            "text": "{$inputs.city} in {$nodes.now.output#/unit}",
        },
        after=("now",),
        expect=("output.x > `1`",),
    )
    workflow = skill.workflow.model_copy(
        update={"nodes": (*skill.workflow.nodes, node), "outputs": {"f": "$nodes.end.output#/x"}}
    )
    return skill.model_copy(update={"workflow": workflow})


def test_a_workflow_is_drawn_with_its_data_flow():
    assert render_mermaid(two_steps().workflow) == snapshot(
        """\
flowchart LR
  n_now["now: weather/current"]
  n_end["end: units/con&quot;vert"]
  inputs([inputs])
  outputs([outputs])
  inputs -- "city" --> n_now
  inputs -- "city" --> n_end
  n_now --> n_end
  n_now -.-> n_end
  n_end --> outputs
"""
    )


def test_a_workflow_is_written_as_arazzo():
    document = json.loads(render_arazzo(portable(two_steps()), 2))
    (workflow,) = document["workflows"]
    assert document["arazzo"] == "1.1.0"
    assert [source["x-mcp-server"] for source in document["sourceDescriptions"]] == ["units", "weather"]
    assert workflow["steps"][1] == {
        "stepId": "end",
        "description": 'units/con"vert',
        "x-mcp-tool": {"server": "units", "tool": 'con"vert'},
        "parameters": [
            {"name": "value", "value": "$steps.now.outputs.output#/temp_c"},
            {"name": "text", "value": "{$inputs.city} in {$steps.now.outputs.output#/unit}"},
        ],
        "dependsOn": ["$steps.now"],
        "outputs": {"output": "$response.body"},
        "x-skillbank": {"expect": ["output.x > `1`"]},
    }
    assert workflow["outputs"] == {"f": "$steps.end.outputs.output#/x"}
