"""Vectors of a set of texts as one matrix, kept on disk and mapped from there.

A file is named by embedder and by the hash of the texts, so that a catalog is embedded once. A
changed catalog takes over the vectors of the texts it shares with the last one. A file that is
torn or altered is made anew. Only this program's own folder is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from catalog.embeddings.embedder import Embedder
from catalog.whole_file import write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Stopped", "Vectors", "load_vectors", "make_vectors"]

_BATCH: Final = 64
"""Texts embedded between two looks at whether to go on."""
_KEPT: Final = 3
"""Matrices of one embedder that stay on disk, latest first."""

OnProgress = Callable[[int, int], bool]
"""Told how many of how many texts are done; False ends it."""


class Stopped(Exception):  # noqa: N818  (read as a finding)
    """Embedding was ended from outside."""


@dataclass(frozen=True)
class Vectors:
    """A matrix with one row a text."""

    matrix: NDArray[np.float32]
    rows: Mapping[str, int]
    """Row by text."""
    embedded: int = 0
    """Texts that had to be embedded for it; the others were known."""


def load_vectors(folder: Path, embedder: str, texts: Sequence[str]) -> Vectors | None:
    """Return the kept vectors of exactly these texts, mapped from disk; None when there are none.

    Args:
        folder: of this program alone.
        embedder: name of the one they come from.
        texts: different texts.
    """
    import numpy as np

    path = folder / _file_name(embedder, texts)
    if _keys(path) != [_key(text) for text in texts]:
        return None
    matrix: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    return Vectors(matrix, {text: row for row, text in enumerate(texts)})


def make_vectors(
    folder: Path, embedder: Embedder, texts: Sequence[str], on_progress: OnProgress = lambda _done, _all: True
) -> Vectors:
    """Return the vectors of these texts, embedding those that no kept matrix has, and keep them.

    Args:
        folder: made if it is not there.
        embedder: makes what is missing.
        texts: different texts.
        on_progress: asked after every batch whether to go on.

    Raises:
        EmbeddingsUnavailable: the embedder cannot.
        Stopped: `on_progress` said so; nothing is kept.
        OSError: the folder cannot be written.
    """
    import numpy as np

    if kept := load_vectors(folder, embedder.name, texts):
        return kept
    matrix = np.zeros((len(texts), embedder.dimensions), dtype=np.float32)
    missing = _take_over(folder, embedder, texts, matrix)
    for start in range(0, len(missing), _BATCH):
        rows = missing[start : start + _BATCH]
        matrix[rows] = embedder.embed([texts[row] for row in rows])
        if not on_progress(min(start + _BATCH, len(missing)), len(missing)):
            raise Stopped("embedding was ended")
    _keep(folder, embedder.name, texts, matrix)
    return Vectors(matrix, {text: row for row, text in enumerate(texts)}, len(missing))


def _take_over(
    folder: Path, embedder: Embedder, texts: Sequence[str], matrix: NDArray[np.float32]
) -> list[int]:
    """Fill the rows of texts that a kept matrix has; return the others."""
    import numpy as np

    missing = {_key(text): row for row, text in enumerate(texts)}
    for path in _kept(folder, embedder.name):
        keys = _keys(path)
        known = [(row, key) for row, key in enumerate(keys or ()) if key in missing]
        if not known:
            continue
        old: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
        if old.shape[1:] == matrix.shape[1:]:
            matrix[[missing.pop(key) for _, key in known]] = old[[row for row, _ in known]]
    return sorted(missing.values())


def _keep(folder: Path, embedder: str, texts: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write matrix, then keys: a matrix counts only beside keys that tell its hash."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / _file_name(embedder, texts)
    written = io.BytesIO()
    np.save(written, matrix, allow_pickle=False)
    content = written.getvalue()
    write_whole(path, content)
    told = {"sha256": hashlib.sha256(content).hexdigest(), "texts": [_key(text) for text in texts]}
    write_whole(path.with_suffix(".json"), json.dumps(told).encode())
    for old in _kept(folder, embedder)[_KEPT:]:
        old.unlink(missing_ok=True)
        old.with_suffix(".json").unlink(missing_ok=True)


def _kept(folder: Path, embedder: str) -> list[Path]:
    """Return the matrices of an embedder, latest first."""
    found = [path for path in folder.glob(f"{_slug(embedder)}.*.npy") if path.with_suffix(".json").exists()]
    return sorted(found, key=lambda path: (-path.stat().st_mtime_ns, path.name))


def _keys(path: Path) -> list[str] | None:
    """Return the hashes of the texts of a matrix, None when it is not whole or not there."""
    try:
        told = json.loads(path.with_suffix(".json").read_bytes())
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(told, dict):
        return None
    kept = cast("dict[str, object]", told)
    texts = kept.get("texts")
    if kept.get("sha256") != found or not isinstance(texts, list):
        return None
    return [str(text) for text in cast("list[object]", texts)]


def _file_name(embedder: str, texts: Sequence[str]) -> str:
    catalog = hashlib.sha256("".join(_key(text) for text in texts).encode()).hexdigest()
    return f"{_slug(embedder)}.{catalog[:16]}.npy"


def _slug(embedder: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", embedder)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
