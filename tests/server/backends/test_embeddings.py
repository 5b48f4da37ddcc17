"""Vectors from an OpenAI-compatible API, through the real SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from anyio import to_thread

from catalog.config import ModelSpec
from catalog.embeddings.embedder import EmbeddingsUnavailable
from server.backends.access import Access
from server.backends.embeddings import HttpEmbedder, open_embeddings
from tests.server.backends.providers.loopback import RIGHT_KEY, Fail, served
from tests.server.backends.providers.openai_api import MODEL, OpenAIApi

pytestmark = pytest.mark.anyio

WRONG_KEY = "sk-wrong-0123456789abcdef"


async def embedded(
    provider: OpenAIApi, use: Callable[[HttpEmbedder], Any], key: str | None = RIGHT_KEY, model: str = MODEL
) -> Any:
    """Return what comes of using the embedder in a thread, as the search does."""
    async with served(provider.app) as root:
        url = f"{root}/v1"

        def work() -> Any:
            spec = ModelSpec("openai-compatible", model, url)
            return use(open_embeddings(spec, Access(key, url, "SKILLBANK_API_KEY")))

        return await to_thread.run_sync(work)


async def test_every_text_has_a_vector_of_length_one_in_its_place():
    texts = [f"{'x' * n}" for n in range(1, 300)]
    provider = OpenAIApi()
    matrix = await embedded(provider, lambda embedder: embedder.embed(texts))
    assert (matrix.shape, matrix.dtype) == ((299, 3), np.float32)
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1)
    assert np.allclose(matrix[:, 0] / matrix[:, 1], np.arange(1, 300), rtol=1e-4)
    assert [len(asked.body["input"]) for asked in provider.asked] == [1, 128, 128, 43]


async def test_an_embedder_has_a_name_of_its_own_and_the_length_of_its_vectors():
    shown = await embedded(OpenAIApi(), lambda embedder: (embedder.name, embedder.dimensions))
    other = await embedded(OpenAIApi(), lambda embedder: (embedder.name, embedder.dimensions))
    assert shown[1] == other[1] == 3
    assert shown[0].startswith("http-")
    assert shown[0] != other[0]


async def test_no_texts_have_no_vectors():
    assert (await embedded(OpenAIApi(), lambda embedder: embedder.embed([]))).shape == (0, 3)


FAILURES = {
    "wrong key": ({"key": WRONG_KEY}, (), "the key was refused: check SKILLBANK_API_KEY"),
    "no key": ({"key": None}, (), "it wants a key: set SKILLBANK_API_KEY"),
    "no such model": ({"model": "other"}, (), "there is no such model or address"),
    "no model": ({"model": ""}, (), "it names no model: write URL#MODEL"),
    "refused": ({}, (Fail(400, "too many"),), "the request was refused (400: too many)"),
    "down": ({}, (Fail(500, "oops"),) * 9, "it failed on its side"),
}


@pytest.mark.parametrize(("how", "script", "why"), FAILURES.values(), ids=FAILURES)
async def test_what_keeps_texts_from_being_embedded_is_told(how: Any, script: Any, why: str):
    with pytest.raises(EmbeddingsUnavailable) as caught:
        await embedded(OpenAIApi(*script), lambda embedder: embedder.embed(["a"]), **how)
    assert why in str(caught.value)
    assert WRONG_KEY not in str(caught.value)


def test_openai_without_a_key_is_not_even_asked():
    with pytest.raises(EmbeddingsUnavailable, match="there is no key: set OPENAI_API_KEY"):
        open_embeddings(ModelSpec("openai", "m"), Access(variable="OPENAI_API_KEY"))
