"""Where weights, runtimes and leases of running servers are kept on this machine, and what is there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from server.models.errors import NoSpace, NotFetched
from server.models.known import KnownModel, find_known_model

__all__ = ["Fetched", "Origin", "ServedModel", "Shelf"]

_GIGABYTE = 10**9
_SPARE_BYTES = 200 * 10**6
_LOCAL_FILE_CONTEXT_TOKENS = 8_192


Origin = Literal["hub", "packages", "kept"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """Weights that are on this machine with the pinned hash."""

    path: Path
    origin: Origin
    """Where they came from; `kept`: they were here already."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Weights on this machine, ready to be served."""

    name: str
    path: Path
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of the user's cache; everything in it can be fetched or built again."""

    folder: Path
    known: tuple[KnownModel, ...]

    @property
    def models(self) -> Path:
        """The folder of the weights."""
        return self.folder / "models"

    @property
    def runtimes(self) -> Path:
        """The folder of the built runtimes."""
        return self.folder / "runtimes"

    @property
    def servers(self) -> Path:
        """The folder of the leases of running servers; only its owner may read it."""
        return self.folder / "servers"

    def path_of(self, model: KnownModel) -> Path:
        """Return where the weights of a model are, or will be."""
        return self.models / model.file

    def has(self, model: KnownModel) -> bool:
        """Return whether the weights are there; a file gets its name only after its hash was checked."""
        path = self.path_of(model)
        return path.is_file() and path.stat().st_size == model.size_bytes

    def find(self, name: str) -> ServedModel:
        """Return the weights that a name stands for: a known model, or a path that ends in `.gguf`.

        Raises:
            UnknownModel: neither.
            NotFetched: it is known and not here.
        """
        if name.endswith(".gguf"):
            path = Path(name).expanduser().resolve()
            if not path.is_file():
                raise NotFetched(f"{name}: there is no such file of weights")
            return ServedModel(path.stem, path, _LOCAL_FILE_CONTEXT_TOKENS)
        model = find_known_model(name, self.known)
        if not self.has(model):
            raise NotFetched(
                f"{model.name} is not on this machine ({model.size_bytes / _GIGABYTE:.1f} GB): "
                f"fetch it with skillbank model fetch {model.name}"
            )
        return ServedModel(model.name, self.path_of(model), model.context_tokens)

    def make_room(self, folder: Path, needed_bytes: int) -> None:
        """Create a folder of the shelf and check that its disk has room.

        Raises:
            NoSpace: it cannot be written, or has not.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(folder).free
        except OSError as error:
            raise NoSpace(f"{folder} cannot be used: {error.strerror or error}") from error
        if free < needed_bytes + _SPARE_BYTES:
            raise NoSpace(
                f"{folder} needs {(needed_bytes + _SPARE_BYTES) / _GIGABYTE:.1f} GB and has "
                f"{free / _GIGABYTE:.1f} GB free: make room, or name another folder in SKILLBANK_CACHE"
            )
