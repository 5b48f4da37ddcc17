"""The part of a skill that travels, and the digest by which two banks know it as the same.

State, version, verdict and runs belong to the bank they were earned in and stay there.
"""

from __future__ import annotations

import json
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from catalog.canonical import digest
from skills_store.skill import Guidance, Pin, ReplayTest, Signature, Skill, ToolHints
from skills_store.workflow.model import Workflow

__all__ = ["PortableSkill", "json_text", "portable", "skill_digest"]


class PortableSkill(BaseModel):
    """What makes a skill the same skill in every bank."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    title: str | None = Field(default=None, max_length=200)
    description: str = Field(default="", max_length=4_000)
    task: str | None = Field(default=None, max_length=20_000)
    """The task it was made for, in the words of whoever gave it."""
    workflow: Workflow
    signature: Signature
    tests: tuple[ReplayTest, ...] = ()
    pins: tuple[Pin, ...] = ()
    hints: ToolHints = ToolHints()
    guidance: Guidance = Guidance()
    tags: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """`sha256:…` over all of it."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, JsonValue]:
        """Return the document, complete and in the order of its fields."""
        document = cast("dict[str, JsonValue]", self.model_dump(mode="json"))
        return {**document, "workflow": self.workflow.to_json()}


def portable(skill: Skill) -> PortableSkill:
    """Return the part of a skill that travels."""
    return PortableSkill(
        name=skill.name,
        title=skill.title,
        description=skill.description,
        task=skill.provenance.task,
        workflow=skill.workflow,
        signature=skill.signature,
        tests=skill.tests,
        pins=skill.pins,
        hints=skill.hints,
        guidance=skill.guidance,
        tags=skill.tags,
    )


def skill_digest(skill: Skill) -> str:
    """Return `sha256:…` over what travels; equal in the bank it came from and in one it went to."""
    return portable(skill).digest


def json_text(value: JsonValue) -> str:
    """Return JSON as files of a package hold it: readable, one line end at the end."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
