"""Inputs that a configuration asks a person for (VS Code): what is asked, and the answers kept.

An answer is kept where secrets are, never in the file. Who asks is the border's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr

__all__ = ["INPUT_KINDS", "InputEntry", "InputKind", "InputSpec"]

InputKind = Literal["promptString", "pickString", "command"]
INPUT_KINDS = ("promptString", "pickString", "command")


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input as a configuration declares it."""

    id: str
    kind: InputKind
    description: str
    """What is asked, in the words of whoever wrote it; empty where they wrote none."""
    password: bool
    """Whether the answer is hidden while it is typed, and taken out of all that is stored."""
    default: str | None
    """What is offered, None: nothing."""
    options: tuple[str, ...]
    """What may be answered, empty: anything."""
    command: str | None
    """The editor's command whose result is meant, None: a person's answer is."""
    key: str
    """Name under which its answer is kept."""

    @property
    def question(self) -> str:
        """What a person is asked."""
        asked = self.description or self.id
        if self.command is None:
            return asked
        return f"{asked} (result of the editor command {self.command!r}, which only the editor can run)"

    def problem(self, answer: str) -> str | None:
        """Return why an answer cannot be taken, or None."""
        if self.options and answer not in self.options:
            return f"{answer!r} is none of: {', '.join(self.options)}"
        return None


def _values(options: object) -> object:
    """Return picked options by their values, where they are labelled."""
    if not isinstance(options, list):
        return options
    return [_value(option) for option in cast("list[object]", options)]


def _value(option: object) -> object:
    if not isinstance(option, dict):
        return option
    labelled = cast("dict[str, object]", option)
    return labelled.get("value", labelled.get("label"))


class InputEntry(BaseModel):
    """One input as an editor's file writes it."""

    model_config = ConfigDict(extra="ignore")

    id: StrictStr = Field(min_length=1, pattern=r"^[^{}]+$")
    type: InputKind
    description: StrictStr = ""
    password: StrictBool = False
    default: StrictStr | None = None
    options: Annotated[tuple[StrictStr, ...], BeforeValidator(_values)] = ()
    command: StrictStr | None = None

    def to_spec(self, key: str) -> InputSpec:
        """Return the input as a value, its answer kept under `key`."""
        return InputSpec(
            id=self.id,
            kind=self.type,
            description=self.description,
            password=self.password,
            default=self.default,
            options=self.options,
            command=self.command if self.type == "command" else None,
            key=key,
        )
