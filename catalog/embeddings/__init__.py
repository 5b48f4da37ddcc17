"""Vectors of texts: the seam to what makes them, a small model that does, and a cache on disk.

Needs the `embeddings` extra only when something is embedded; importing it loads neither numpy
nor a model.
"""

from catalog.embeddings.embedder import Embedder, EmbeddingsUnavailable
from catalog.embeddings.minilm import MINILM, open_minilm
from catalog.embeddings.vectors import Stopped, Vectors, load_vectors, make_vectors

__all__ = [
    "MINILM",
    "Embedder",
    "EmbeddingsUnavailable",
    "Stopped",
    "Vectors",
    "load_vectors",
    "make_vectors",
    "open_minilm",
]
