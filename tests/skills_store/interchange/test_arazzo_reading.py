"""Arazzo descriptions of strangers: what is read; whatever else they say is refused with its place."""

from __future__ import annotations

import json

import pytest
import yaml

from catalog.effects import Effect
from catalog.tools import ToolId
from skills_store.errors import NotImportable
from skills_store.interchange.arazzo import render_arazzo
from skills_store.interchange.arazzo_reading import is_arazzo, parse_arazzo
from skills_store.interchange.portable import portable
from skills_store.skill import Pin
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Node, SkillRef
from tests.skills_store.conftest import make_skill

HASH = f"sha256:{'0' * 64}"
CURRENT, CONVERT = ToolId("weather", "current"), ToolId("units", "convert")
FOREIGN = """
arazzo: 1.0.1
info: {title: Weather, version: "2"}
sourceDescriptions: []
workflows:
  - workflowId: Weather-Report
    summary: How warm it is
    inputs: {type: object, properties: {city: {type: string}, day: {type: string, default: 2026-11-30}}}
    steps:
      - stepId: look-up
        x-mcp-tool: {server: weather, tool: current}
        parameters:
          - {name: city, value: $inputs.city}
        outputs: {warm: $response.body#/temp/celsius, all: $response.body}
      - stepId: convert
        x-mcp-tool: {server: units, tool: convert}
        parameters:
          - {name: value, value: $steps.look-up.outputs.warm}
          - {name: note, value: "{$inputs.city}: {$steps.look-up.outputs.all#/sky}"}
        dependsOn: [$steps.look-up]
        outputs: {result: $response.body#/x}
    outputs: {fahrenheit: $steps.convert.outputs.result}
"""
CONTRACTS = {CURRENT: HASH, CONVERT: HASH}


def a_skill():
    pins = tuple(Pin(tool=tool, contract_hash=HASH, effect=Effect.READ) for tool in (CURRENT, CONVERT))
    skill = make_skill(pins=pins)
    node = Node(
        id="end",
        tool=CONVERT,
        arguments={"value": "$nodes.now.output#/temp_c", "text": "{$inputs.city}, {$nodes.now.output#/unit}"},
        after=("now",),
        when="$inputs.city",
        for_each={"context": "$nodes.now.output", "selector": "list", "type": "jmespath"},
        expect=("length(output) > `1`",),
    )
    outputs = {"f": "$nodes.end.output", "price": "$$5"}
    changes = {"nodes": (*skill.workflow.nodes, node), "outputs": outputs, "expect": ("output.f != `null`",)}
    return skill.model_copy(update={"workflow": skill.workflow.model_copy(update=changes)})


def test_what_is_written_comes_back_but_for_its_tests():
    skill = a_skill()
    imported = parse_arazzo(render_arazzo(portable(skill), 3).encode()).skill.skill
    assert content_hash(imported.workflow) == content_hash(skill.workflow)
    assert (imported.name, imported.title, imported.pins) == (skill.name, skill.title, portable(skill).pins)
    assert imported.signature.output_schema == skill.signature.output_schema
    assert imported.tests == ()


def test_a_description_by_another_hand_is_read_where_it_names_tools():
    skill = parse_arazzo(FOREIGN.encode(), CONTRACTS).skill.skill
    assert (skill.name, skill.title, len(skill.pins)) == ("weather_report", "How warm it is", 2)
    assert [node.id for node in skill.workflow] == ["look_up", "convert"]
    assert skill.workflow.nodes[1].arguments == {
        "value": "$nodes.look_up.output#/temp/celsius",
        "note": "{$inputs.city}: {$nodes.look_up.output#/sky}",
    }
    assert skill.workflow.nodes[1].after == ("look_up",)
    assert skill.workflow.outputs == {"fahrenheit": "$nodes.convert.output#/x"}
    assert skill.workflow.inputs["properties"]["day"]["default"] == "2026-11-30"


def step(**changes):
    def change(document):
        document["workflows"][0]["steps"][0].update(changes)

    return change


def workflow(**changes):
    return lambda document: document["workflows"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda d: d.update(arazzo="2.0.0"), "only 1.x", id="version"),
        pytest.param(lambda d: d["workflows"].append({}), "it holds 2", id="two-workflows"),
        pytest.param(workflow(steps=[]), "steps: there are 0", id="no-steps"),
        pytest.param(workflow(steps="all"), "steps is no list", id="steps-no-list"),
        pytest.param(workflow(workflowId="../.."), "no name can be made", id="name"),
        pytest.param(workflow(failureActions=[]), "'failureActions' is not read", id="actions"),
        pytest.param(step(operationId="getWeather"), "steps/0: 'operationId' is not read", id="http"),
        pytest.param(step(successCriteria=[]), "'successCriteria' is not read", id="criteria"),
        pytest.param(step(stepId="convert"), "the same stepId", id="twice"),
        pytest.param(step(stepId="a b"), "stepId: 'a b'", id="step-name"),
        pytest.param(step(dependsOn=["$steps.other"]), "no step 'other'", id="depends"),
        pytest.param(step(outputs={"x": "$response.header.x"}), "only \\$response.body", id="header"),
        pytest.param(
            step(parameters=[{"name": "city", "in": "query", "value": 1}]), "'in' is not read", id="in"
        ),
        pytest.param(step(parameters=[{"name": "city"}]), "a name of its own and a value", id="no-value"),
        pytest.param(
            step(parameters=[{"name": "city", "value": "$url"}]), "'\\$url' is an expression", id="url"
        ),
        pytest.param(
            step(parameters=[{"name": "city", "value": "$steps.convert.outputs.nothing"}]),
            "no output 'nothing'",
            id="no-output",
        ),
        pytest.param(
            step(**{"x-skillbank": {"skill": {"name": "s", "version": 1}}}), "another skill", id="skill"
        ),
        pytest.param(step(**{"x-skillbank": {"retry": 9}}), "'retry' is not read", id="own"),
        pytest.param(step(**{"x-mcp-tool": {"server": "weather"}}), "tool", id="half-a-tool"),
        pytest.param(step(**{"x-mcp-tool": {"server": "mail", "tool": "send"}}), "mail/send", id="unknown"),
        pytest.param(workflow(inputs=[]), "inputs", id="inputs"),
    ],
)
def test_what_would_mean_another_thing_is_refused_with_its_place(change, said):
    document = yaml.safe_load(FOREIGN.replace("2026-11-30", "x"))
    change(document)
    with pytest.raises(NotImportable, match=said):
        parse_arazzo(json.dumps(document).encode(), CONTRACTS)


def test_a_step_that_names_no_tool_is_refused():
    document = yaml.safe_load(FOREIGN.replace("2026-11-30", "x"))
    del document["workflows"][0]["steps"][0]["x-mcp-tool"]
    with pytest.raises(NotImportable, match="steps/0: it names no MCP tool"):
        parse_arazzo(json.dumps(document).encode(), CONTRACTS)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"arazzo: 1.0.0\nx: &a [1]\ny: [*a, *a]", id="anchors"),
        pytest.param(b"arazzo: 1.0.0\nx: !!python/object/apply:os.system [id]", id="python-object"),
        pytest.param(b"arazzo: 1.0.0\nx: .nan", id="nan"),
        pytest.param(b"arazzo: 1.0.0\nx: [" + b"[" * 5_000, id="deep"),
        pytest.param(b'{"arazzo": "1.0.0", "x": ' + b"[" * 200 + b"]" * 200 + b"}", id="deep-json"),
        pytest.param(b"arazzo: 1.0.0\nx: " + b"y" * (1 << 20), id="large"),
        pytest.param(b"\xff\xfearazzo: 1", id="no-text"),
        pytest.param(b"- arazzo", id="a-list"),
    ],
)
def test_a_file_that_overloads_or_is_none_is_refused(content):
    with pytest.raises(NotImportable):
        parse_arazzo(content)


def test_a_skill_that_calls_another_does_not_come_back_alone():
    node = Node(id="other", skill=SkillRef(name="temperature", version=1))
    skill = make_skill()
    calling = skill.workflow.model_copy(update={"nodes": (node,), "outputs": {"c": "$nodes.other.output"}})
    text = render_arazzo(portable(skill.model_copy(update={"workflow": calling})), 1)
    with pytest.raises(NotImportable, match="import a bundle"):
        parse_arazzo(text.encode())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{\n  "arazzo": "1.1.0"', True),
        (FOREIGN.encode(), True),
        (b'{"format": "skillbank-bundle"}', False),
        (b'{"note": "arazzo"}', False),
    ],
)
def test_a_file_is_known_by_its_first_key(content, told):
    assert is_arazzo(content) is told
