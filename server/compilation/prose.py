"""Names and descriptions of skills, rendered from graph and schemas for the calling model.

Never from tool output (DESIGN §8: no laundering of upstream text). The task, which is the
caller's own text, is quoted once as the occasion.
"""

from __future__ import annotations

import re

from pydantic import JsonValue

from catalog.tools import JsonSchema
from skills_store.skill import Guidance, Signature
from skills_store.workflow.model import Workflow

__all__ = ["render_description", "render_guidance", "skill_name"]

_MAX_NAME = 40


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


def render_description(workflow: Workflow, signature: Signature) -> str:
    """Return what the skill does, takes and gives, in at most a few sentences."""
    steps = ", then ".join(f"{node.target}" for node in workflow.nodes)
    takes = _fields(signature.input_schema)
    gives = _fields(signature.output_schema)
    lead = (workflow.description or "").strip().rstrip(".")
    first = f"{lead}." if lead else f"Gets {gives or 'a result'} from {takes or 'no input'}."
    return f"{first} Takes {takes or 'nothing'}; returns {gives}. Runs {steps} as one verified call."


def _fields(schema: JsonSchema) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ""
    return ", ".join(f"{name} ({_kind(part)})" for name, part in properties.items())


def _kind(part: JsonValue) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else "any"


def render_guidance(task: str | None, workflow: Workflow) -> Guidance:
    """Return when to use the skill and what to mind, from its task and graph."""
    when = f"Tasks like: {task.strip()}" if task else f"Where {workflow.name.replace('_', ' ')} is asked for."
    servers = sorted({node.tool.server for node in workflow.nodes if node.tool})
    pitfalls = (f"Needs the tool server{'s' if len(servers) > 1 else ''} {', '.join(servers)}.",)
    return Guidance(when_to_use=when[:400], pitfalls=pitfalls)
