"""What the `model` commands answer, as data: the stable keys of their `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from server.models.known import KnownModel
from server.models.runtime import Runtime
from server.models.shelf import Fetched, Origin, Shelf

if TYPE_CHECKING:
    from server.models.leases import Lease

__all__ = ["FetchedModel", "ListedModel", "ListedModels", "RunningModel", "RuntimeAnswer", "ServingModel"]


class RuntimeAnswer(BaseModel):
    """The llama-server that runs models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    origin: Literal["named", "path", "built"]
    """By SKILLBANK_LLAMA_SERVER, on PATH, or built here."""

    @classmethod
    def of(cls, runtime: Runtime) -> RuntimeAnswer:
        """Return what to say of a runtime."""
        return cls(path=str(runtime.path), origin=runtime.origin)


class RunningModel(BaseModel):
    """A server that runs now."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    url: str
    pid: int
    shared: bool
    """Whether `local:NAME` of other processes uses it."""


class ListedModel(BaseModel):
    """A model that can be fetched."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    aliases: tuple[str, ...]
    parameters: str
    quantisation: str
    bytes: int
    licence: str
    source: str
    sha256: str
    good_for: str
    path: str
    """Where it is, or will be."""
    fetched: bool


class ListedModels(BaseModel):
    """Answer of `model list`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[ListedModel, ...]
    running: tuple[RunningModel, ...]
    runtime: RuntimeAnswer | None
    """None: it is not here; `model fetch` sees to it."""
    folder: str

    @classmethod
    def of(cls, shelf: Shelf, runtime: Runtime | None, running: Sequence[Lease]) -> ListedModels:
        """Return what is known and what is there."""
        return cls(
            models=tuple(_listed(model, shelf) for model in shelf.known),
            running=tuple(
                RunningModel(model=lease.model, url=lease.url, pid=lease.pid, shared=lease.shared)
                for lease in running
            ),
            runtime=RuntimeAnswer.of(runtime) if runtime else None,
            folder=str(shelf.folder),
        )


class FetchedModel(BaseModel):
    """Answer of `model fetch`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    path: str
    origin: Origin
    """Where it came from; `kept`: it was here, and its hash was checked again."""
    bytes: int
    sha256: str
    licence: str
    source: str
    runtime: RuntimeAnswer | None
    """None: it was not asked for."""

    @classmethod
    def of(cls, model: KnownModel, fetched: Fetched, runtime: Runtime | None) -> FetchedModel:
        """Return what was fetched."""
        return cls(
            model=model.name,
            path=str(fetched.path),
            origin=fetched.origin,
            bytes=model.size_bytes,
            sha256=model.sha256,
            licence=model.licence,
            source=model.source,
            runtime=RuntimeAnswer.of(runtime) if runtime else None,
        )


class ServingModel(BaseModel):
    """Answer of `model serve`, printed when it answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    url: str
    key: str
    """Sent as bearer token; new for each run."""
    slots: int
    context_tokens: int
    pid: int
    local: str
    """How skillbank's configuration and `--model` name it."""
    compatible: str
    """How anything that speaks the OpenAI API is told of it."""

    @classmethod
    def of(cls, lease: Lease, asked: str) -> ServingModel:
        """Return where a server answers.

        Args:
            asked: the name by which it was asked for.
        """
        return cls(
            model=lease.model,
            url=lease.url,
            key=lease.key,
            slots=lease.slots,
            context_tokens=lease.context_tokens,
            pid=lease.pid,
            local=f"local:{asked}",
            compatible=f"openai-compatible:{lease.url}#{lease.model}",
        )


def _listed(model: KnownModel, shelf: Shelf) -> ListedModel:
    return ListedModel(
        name=model.name,
        aliases=model.aliases,
        parameters=model.parameters,
        quantisation=model.quantisation,
        bytes=model.size_bytes,
        licence=model.licence,
        source=model.source,
        sha256=model.sha256,
        good_for=model.good_for,
        path=str(shelf.path_of(model)),
        fetched=shelf.has(model),
    )
