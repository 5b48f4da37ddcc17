"""Skills and traces to store, varied by keyword."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from catalog.tools import ToolId
from skills_store.skill import ReplayTest, Signature, Skill
from skills_store.trace import Step, Trace
from skills_store.workflow.model import Node, Workflow

SkillMaker = Callable[..., Skill]
TraceMaker = Callable[..., Trace]


def make_skill(**changes: Any) -> Skill:
    inputs = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    workflow = Workflow(
        name="temperature",
        inputs=inputs,
        nodes=(Node(id="now", tool=ToolId("weather", "current"), arguments={"city": "$inputs.city"}),),
        outputs={"celsius": "$nodes.now.output#/temp_c"},
    )
    fields: dict[str, Any] = {
        "name": "temperature",
        "version": 1,
        "state": "proposed",
        "workflow": workflow,
        "content_hash": "sha256:content",
        "shape_hash": "sha256:shape",
        "signature": Signature(input_schema=inputs, output_schema={"type": "object"}),
        "tests": (ReplayTest(name="original", inputs={"city": "Oslo"}, outputs={"celsius": 4.0}),),
        "created_at": 100.0,
    }
    return Skill(**{**fields, **changes})


def make_trace(**changes: Any) -> Trace:
    step = Step(node="now", tool=ToolId("weather", "current"), outcome="succeeded", output={"temp_c": 4.0})
    fields: dict[str, Any] = {
        "id": "t1",
        "workflow_hash": "sha256:content",
        "inputs": {"city": "Oslo"},
        "steps": (step,),
        "outputs": {"celsius": 4.0},
        "status": "succeeded",
        "calls": 1,
    }
    return Trace(**{**fields, **changes})


@pytest.fixture
def a_skill() -> SkillMaker:
    return make_skill


@pytest.fixture
def a_trace() -> TraceMaker:
    return make_trace
