"""The stories of the demo as data: a task, a workflow that fails at it, and what a client asks later.

The repair is given `task`, `inputs`, `broken` and the verdict of `assertions`. It sees neither
`mistakes`, nor `examples` (which admission runs a skill on), nor the held-out `call`.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from server.demo.errors import DemoRefused
from server.provisioning.demo_files import FIXTURES
from skills_store.workflow.assertions import assertion_problem

__all__ = ["HeldOutCall", "Mistake", "MistakeKind", "Story", "load_stories"]

MistakeKind = Literal[
    "wrong tool",
    "missing argument",
    "misnamed argument",
    "wrong type",
    "wrong value",
    "missing step",
    "dangling reference",
    "wrong order",
]


def _readable(expression: str) -> str:
    if (problem := assertion_problem(expression)) is not None:
        raise ValueError(f"assertion {expression!r}: {problem}")
    return expression


Assertions = Annotated[tuple[Annotated[str, AfterValidator(_readable)], ...], Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Mistake(_Model):
    """One thing that is wrong with a broken workflow, for people."""

    kind: MistakeKind
    place: str
    """Id of the node it is in, or that is missing."""
    detail: str


class HeldOutCall(_Model):
    """What a client asks of the finished skill, and what the right answer must fulfil."""

    arguments: dict[str, JsonValue]
    assertions: Assertions


class Story(_Model):
    """One broken workflow on its way to a tool."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    """Name of the story and of the skill it ends in."""
    title: str
    task: str
    """What is wanted, in a person's words, with the concrete values."""
    servers: tuple[str, ...] = Field(min_length=1)
    inputs: dict[str, JsonValue]
    broken: dict[str, JsonValue]
    mistakes: tuple[Mistake, ...] = Field(min_length=2)
    assertions: Assertions
    examples: tuple[dict[str, JsonValue], ...] = ()
    """Other valid inputs, where none can be made up: files and folders that are there."""
    call: HeldOutCall


_STORIES: TypeAdapter[list[Story]] = TypeAdapter(list[Story])


def load_stories(files: Path, only: str | None = None) -> list[Story]:
    """Return the stories, their paths inside of a folder of files.

    Args:
        files: the folder that `server.demo.files` fills.
        only: name of the one story to return; None: all.

    Raises:
        DemoRefused: no story has that name.
    """
    text = resources.files("server.demo").joinpath("data", "stories.json").read_text("utf-8")
    stories = _STORIES.validate_json(text.replace(FIXTURES, json.dumps(str(files))[1:-1]))
    if only is None:
        return stories
    chosen = [story for story in stories if story.name == only]
    if not chosen:
        raise DemoRefused(f"no story {only!r}; there are {', '.join(story.name for story in stories)}")
    return chosen
