"""Names and descriptions of skills, rendered from graph and schemas for the calling model.

Never from tool output (DESIGN §8: no laundering of upstream text). The task, which is the
caller's own text, is quoted once as the occasion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from catalog.tools import JsonSchema
from server.compilation.places import literal_places
from server.planning.literals import task_literals
from skills_store.doubts import Doubts
from skills_store.skill import Guidance, Signature, Skill
from skills_store.workflow.model import Workflow

__all__ = ["guidance_lines", "name_of_task", "render_description", "render_guidance", "skill_name"]

_MAX_NAME = 40
_CONSTANTS_NAMED = 6
_LONGEST_CONSTANT = 40
_ADVICE = {
    "called_wrong": ": somebody called the answer wrong",
    "check_failed": ": it answered, but not what was asked",
    "tool_error": ": look at the values before the call",
    "disguised_error": ": an answer may only say that it failed",
    "invalid_argument": ": take values as the tools admit them",
    "dangling_reference": ": an answer may lack what it reads",
}
"""What a fault class means for the one who plans."""


def skill_name(wished: str) -> str:
    """Return a legal skill name (`[a-z][a-z0-9_]{0,39}`) made of a wished one.

    Raises:
        ValueError: nothing legal is left of it.
    """
    name = re.sub(r"[^a-z0-9]+", "_", wished.lower()).strip("_")
    name = re.sub(r"^[^a-z]+", "", name)[:_MAX_NAME].rstrip("_")
    if not name:
        raise ValueError(f"{wished!r} gives no skill name: it needs a letter")
    return name


def name_of_task(task: str) -> str:
    """Return a legal name made of a task's own words, without the values it states."""
    words = [str(item.value).lower() for item in task_literals(task) if item.kind in ("word", "symbol")]
    plain = [word for word in words if re.fullmatch(r"[a-z][a-z0-9_]*", word)]
    while len("_".join(plain)) > _MAX_NAME:
        plain.pop()
    return "_".join(plain) or "skill"


def render_description(workflow: Workflow, signature: Signature) -> str:
    """Return what the skill does, takes and gives, in at most a few sentences."""
    steps = ", then ".join(node.target for node in workflow.nodes)
    takes = _fields(signature.input_schema) or "nothing"
    gives = _fields(signature.output_schema) or "nothing"
    lead = (workflow.description or "").strip().rstrip(".")
    told = f"Takes {takes}; returns {gives}. Runs {steps} as one verified call."
    return f"{lead}. {told}" if lead else told


def _fields(schema: JsonSchema) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ""
    return ", ".join(f"{name} ({_kind(part)})" for name, part in properties.items())


def _kind(part: JsonValue) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else "any"


def render_guidance(task: str | None, workflow: Workflow) -> Guidance:
    """Return when to use the skill and what to mind: what it needs, and what it always assumes."""
    when = f"Tasks like: {task.strip()}" if task else f"Where {workflow.name.replace('_', ' ')} is asked for."
    servers = sorted({node.tool.server for node in workflow.nodes if node.tool})
    needs = [f"Needs the tool server{'s' if len(servers) > 1 else ''} {', '.join(servers)}."]
    constants = _constants(workflow)
    always = [f"Always uses {', '.join(constants)}."] if constants else []
    tools = list(dict.fromkeys(str(node.tool) for node in workflow.nodes if node.tool))
    without = [f"Not where {_either(tools)} is missing or takes something else."] if tools else []
    return Guidance(
        when_to_use=when[:400], when_not=tuple(without), pitfalls=(*(needs if servers else []), *always)
    )


def guidance_lines(skill: Skill, doubts: Doubts) -> tuple[str, ...]:
    """Return what is said beside a skill when a plan starts from it, what its uses showed included.

    Of failures the class, a count and inputs that the caller said are told, never what a tool answered.
    """
    guidance = skill.guidance
    seen = [
        f"Mind {kind.replace('_', ' ')}, seen in {count} of its latest uses{_ADVICE.get(kind, '')}."
        for kind, count in doubts.faults
    ]
    failed = [f"Did not work with {_values(inputs)}." for inputs in doubts.failed_inputs]
    lines = (guidance.when_to_use, *guidance.when_not, *failed, *seen, *guidance.pitfalls)
    return tuple(line for line in lines if line)


def _values(inputs: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{name} = {value!r}"[:_LONGEST_CONSTANT] for name, value in inputs.items())


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _constants(workflow: Workflow) -> list[str]:
    """Return the literals of the workflow that no input carries, the first few of them."""
    found = [
        f"{place.argument} = {place.value!r}"
        for place in literal_places(workflow)
        if place.value is not None and len(str(place.value)) <= _LONGEST_CONSTANT
    ]
    return list(dict.fromkeys(found))[:_CONSTANTS_NAMED]
