"""Names and descriptions of skills, rendered from graph and schemas for the calling model.

Never from tool output (DESIGN §8: no laundering of upstream text). The task, which is the
caller's own text, is quoted once as the occasion.
"""

from __future__ import annotations

import re

from pydantic import JsonValue

from catalog.tools import JsonSchema
from server.compilation.places import literal_places
from server.planning.literals import task_literals
from skills_store.skill import Guidance, Signature
from skills_store.workflow.model import Workflow

__all__ = ["name_of_task", "render_description", "render_guidance", "skill_name"]

_MAX_NAME = 40
_CONSTANTS_NAMED = 6
_LONGEST_CONSTANT = 40


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
    return Guidance(when_to_use=when[:400], pitfalls=(*(needs if servers else []), *always))


def _constants(workflow: Workflow) -> list[str]:
    """Return the literals of the workflow that no input carries, the first few of them."""
    found = [
        f"{place.argument} = {place.value!r}"
        for place in literal_places(workflow)
        if place.value is not None and len(str(place.value)) <= _LONGEST_CONSTANT
    ]
    return list(dict.fromkeys(found))[:_CONSTANTS_NAMED]
