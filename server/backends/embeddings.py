"""Vectors of texts from any OpenAI-compatible `/v1/embeddings`: a second source for search by meaning.

Fits `catalog.embeddings.embedder.Embedder`, so it is synchronous; the SDK's own retries serve here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import httpx2
import openai

from catalog.canonical import digest
from catalog.config import ModelSpec
from catalog.embeddings.embedder import EmbeddingsUnavailable
from server.backends.access import Access
from server.backends.attempts import Setback
from server.backends.failures import Teller
from server.backends.openai_client import DUMMY_KEY, OPENAI_URL, is_loopback, setbacks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["HttpEmbedder", "open_embeddings"]

_TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
_NOTHING_KEPT = httpx2.Limits(max_keepalive_connections=0)
"""Each request has a connection of its own: the seam has no place to close one."""
_RETRIES = 2
_BATCH = 128
"""Texts of one request; servers refuse many more."""


class HttpEmbedder:
    """One embedding model behind HTTP; safe for use by several threads. Made by `open_embeddings`."""

    def __init__(self, spec: ModelSpec, client: openai.OpenAI, teller: Teller) -> None:
        self._model = spec.model
        self._client = client
        self._teller = teller
        self._name = f"http-{digest(str(spec))[-16:]}"
        self._dimensions = len(self._fetched(["text"])[0])

    @property
    def name(self) -> str:
        """Fit for a file name; another one for another model or address."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of a vector, as the first answer had it."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of length 1 a text, as the rows of a matrix.

        Raises:
            EmbeddingsUnavailable: nobody answers, or not with vectors of this length.
        """
        import numpy as np

        rows = [
            row
            for start in range(0, len(texts), _BATCH)
            for row in self._fetched(texts[start : start + _BATCH])
        ]
        if any(len(row) != self._dimensions for row in rows):
            raise EmbeddingsUnavailable(self._teller.told("its vectors changed their length"))
        matrix = np.array(rows, dtype=np.float32).reshape(len(texts), self._dimensions)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise EmbeddingsUnavailable(self._teller.told("it sent a vector without a direction"))
        return matrix / lengths

    def _fetched(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            with setbacks(self._teller, lambda: False):
                answer = self._client.embeddings.create(
                    model=self._model, input=list(texts), encoding_format="float"
                )
        except Setback as setback:
            raise EmbeddingsUnavailable(str(setback.error)) from None
        rows = {entry.index: entry.embedding for entry in answer.data}
        if rows.keys() != {*range(len(texts))} or not all(rows.values()):
            raise EmbeddingsUnavailable(self._teller.told("it did not send a vector for every text"))
        return [rows[place] for place in range(len(texts))]


def open_embeddings(spec: ModelSpec, access: Access) -> HttpEmbedder:
    """Return the embedder of a model, which is asked once for the length of its vectors.

    Args:
        spec: of kind `openai` or `openai-compatible`.
        access: how it is reached.

    Raises:
        EmbeddingsUnavailable: there is no key where one is needed, or nobody answers.
    """
    teller = Teller(f"embeddings {spec}", access)
    if spec.kind == "openai" and access.key is None:
        raise EmbeddingsUnavailable(str(teller.no_key()))
    if not spec.model:
        raise EmbeddingsUnavailable(teller.told("it names no model: write URL#MODEL"))
    url = access.url or OPENAI_URL
    client = openai.OpenAI(
        api_key=access.key or DUMMY_KEY,
        base_url=url,
        max_retries=_RETRIES,
        http_client=openai.DefaultHttpxClient(
            base_url=url, timeout=_TIMEOUT, limits=_NOTHING_KEPT, trust_env=not is_loopback(url)
        ),
    )
    return HttpEmbedder(spec, client, teller)
