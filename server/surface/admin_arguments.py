"""The arguments of the admin tools: one model per tool is its schema and its parser."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from server.surface.names import ADMIN_NAMES

__all__ = [
    "ADMIN_ARGUMENTS",
    "AddServer",
    "RemoveServer",
    "ReviewSkill",
    "RollBackSkill",
    "SetEffect",
]


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AddServer(_Arguments):
    """Arguments of `add_server`."""

    name: str = Field(min_length=1, max_length=60, description="Name of the server here.")
    command: tuple[str, ...] = Field(
        default=(), description="Program and arguments that start it. Left out: give url."
    )
    url: str | None = Field(default=None, description="Address of a server over HTTP.")


class RemoveServer(_Arguments):
    """Arguments of `remove_server`."""

    name: str = Field(description="Name of the server.")


class ReviewSkill(_Arguments):
    """Arguments of `review_skill`."""

    name: str | None = Field(default=None, description="Skill to decide on. Left out: list what waits.")
    version: int | None = Field(default=None, ge=1, description="Its version; left out: the current one.")
    decision: Literal["approve", "reject"] | None = Field(default=None, description="What the user says.")
    reason: str = Field(default="", description="Why it is rejected.")


class RollBackSkill(_Arguments):
    """Arguments of `roll_back_skill`."""

    name: str = Field(description="Name of the skill.")
    version: int = Field(ge=1, description="The earlier version that becomes the current one.")


class SetEffect(_Arguments):
    """Arguments of `set_effect`."""

    server: str = Field(description="Name of the tool server.")
    tool: str = Field(description="Name of the tool, or a pattern such as get_*.")
    effect: Literal["pure", "read", "write", "unknown"] = Field(description="What it does.")


ADMIN_ARGUMENTS: Mapping[str, type[BaseModel]] = MappingProxyType(
    dict(zip(ADMIN_NAMES, (AddServer, RemoveServer, ReviewSkill, RollBackSkill, SetEffect), strict=True))
)
