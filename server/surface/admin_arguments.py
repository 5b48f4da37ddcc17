"""The arguments of the admin tools: one model per tool is its schema and its parser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from server.bank.upstreams.exploration import Exploration
from server.exploration.options import ExplorationOptions
from server.surface.names import ADMIN_NAMES

__all__ = [
    "ADMIN_ARGUMENTS",
    "AddServer",
    "ExploreServer",
    "RemoveServer",
    "ReviewSkill",
    "RollBackSkill",
    "SetEffect",
]


_DEFAULTS = ExplorationOptions()


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


class ExploreServer(_Arguments):
    """Arguments of `explore_server`."""

    name: str = Field(description="Name of the server.")
    budget_calls: int = Field(default=_DEFAULTS.budget_calls, ge=1, le=5_000, description="Calls in all.")
    tasks: int = Field(default=_DEFAULTS.tasks, ge=0, le=100, description="Tasks wanted at most.")
    difficulty: Literal[1, 2, 3] = Field(
        default=_DEFAULTS.difficulty, description="Of the hardest tasks: 1 one call, 2 several, 3 chained."
    )
    tools: tuple[str, ...] = Field(default=(), description="Only these tools. Left out: all that may be.")
    learn: bool = Field(default=True, description="Make skills of the tasks.")

    def exploration(self) -> Exploration:
        """Return what is asked of the bank."""
        options = replace(
            _DEFAULTS, budget_calls=self.budget_calls, tasks=self.tasks, difficulty=self.difficulty
        )
        return Exploration(self.name, options, frozenset(self.tools) or None, learn=self.learn)


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
    dict(
        zip(
            ADMIN_NAMES,
            (AddServer, RemoveServer, ExploreServer, ReviewSkill, RollBackSkill, SetEffect),
            strict=True,
        )
    )
)
