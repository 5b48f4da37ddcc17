"""The seam to what turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "EmbeddingsUnavailable"]


class EmbeddingsUnavailable(Exception):  # noqa: N818  (read as a finding)
    """Why texts cannot be embedded here; the message says what would mend it."""


class Embedder(Protocol):
    """Turns texts into vectors whose products say how alike the texts are.

    Synchronous and possibly slow: callers keep it off the event loop. Equal texts get equal
    vectors as long as the name is the same, so that vectors may be kept by name and text.
    """

    @property
    def name(self) -> str:
        """Identifies model and weights; it changes whenever the vectors would."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of length 1 a text, as the rows of a matrix.

        Raises:
            EmbeddingsUnavailable: it cannot be done now; says why.
        """
        ...
