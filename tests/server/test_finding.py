"""Finding tools and skills by meaning while the server goes on answering."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from catalog.embeddings import Embedder, EmbeddingsUnavailable
from catalog.search import Scope
from server.bank import using
from server.bank.finding import Finder
from server.bank.upstreams import relaying
from server.requests import RepairRequest
from server.verification import Checks
from tests.catalog.test_search_index import TOOLS, Meanings

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.anyio


def keys(findings) -> list[str]:
    return [hit.entry.key for hit in findings.found.hits]


async def test_meanings_are_compared_from_the_first_search_on(tmp_path: Path):
    finder = Finder(Meanings, tmp_path, patience_seconds=10, loading_seconds=10)
    findings = await finder.find("is it cold", 1, TOOLS, [])
    assert (keys(findings), findings.found.method, findings.note) == (["tool:sky/forecast"], "embeddings", "")


async def test_the_model_is_loaded_and_run_off_the_event_loop(tmp_path: Path):
    loaded: list[str] = []

    def load() -> Embedder:
        loaded.append(threading.current_thread().name)
        return Meanings()

    finder = Finder(load, tmp_path, patience_seconds=10, loading_seconds=10)
    await finder.find("cold", 1, TOOLS, [])
    await finder.find("letter", 1, TOOLS[:2], [])
    assert loaded == ["skillbank-vectors"]


async def test_until_vectors_are_there_words_decide_and_the_answer_says_so(tmp_path: Path):
    go = threading.Event()

    def load() -> Embedder:
        go.wait(10)
        return Meanings()

    finder = Finder(load, tmp_path)
    waiting = await finder.find("letter", 1, TOOLS, [])
    assert (keys(waiting), waiting.found.method) == (["tool:post/dispatch"], "lexical")
    assert waiting.note == "the model for meanings is being loaded"
    go.set()
    later = waiting
    with anyio.fail_after(10):
        while later.found.method == "lexical":
            later = await finder.find("is it cold", 1, TOOLS, [])
    assert (keys(later), later.note) == (["tool:sky/forecast"], "")


async def test_without_the_extra_words_decide_and_the_answer_names_the_remedy(tmp_path: Path):
    def load() -> Embedder:
        raise EmbeddingsUnavailable("onnxruntime is not installed: pip install 'skillbank[embeddings]'")

    finder = Finder(load, tmp_path, patience_seconds=10, loading_seconds=10)
    findings = await finder.find("letter", 1, TOOLS, [])
    assert (keys(findings), findings.found.method) == (["tool:post/dispatch"], "lexical")
    assert "pip install 'skillbank[embeddings]'" in findings.note


async def test_a_model_that_fails_later_leaves_the_words(tmp_path: Path):
    model = Meanings()
    finder = Finder(lambda: model, tmp_path, patience_seconds=10, loading_seconds=10)
    await finder.find("cold", 1, TOOLS, [])
    model.broken = True
    findings = await finder.find("letter", 1, TOOLS, [])
    assert (keys(findings), findings.note) == (["tool:post/dispatch"], "the model has left")


async def test_a_folder_that_cannot_be_written_leaves_the_words(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    finder = Finder(Meanings, tmp_path / "file" / "vectors", patience_seconds=10, loading_seconds=10)
    findings = await finder.find("letter", 1, TOOLS, [])
    assert findings.found.method == "lexical"
    assert findings.note.startswith("vectors cannot be kept in")


async def test_texts_are_compared_by_meaning_once_the_model_is_loaded_and_each_is_embedded_once(
    tmp_path: Path,
):
    model = Meanings()
    finder = Finder(lambda: model, tmp_path, patience_seconds=10, loading_seconds=10)
    assert await finder.compare("cold", ["weather", "letter"]) is None
    await finder.find("cold", 1, TOOLS, [])
    near = await finder.compare("cold", ["weather", "letter", "weather"])
    assert near is not None
    assert near["weather"] > 0.5 > near["letter"]
    model.read.clear()
    await finder.compare("cold", ["weather", "letter"])
    assert model.read == ["cold"]


async def test_a_model_that_left_compares_no_texts_and_says_why(tmp_path: Path):
    model = Meanings()
    finder = Finder(lambda: model, tmp_path, patience_seconds=10, loading_seconds=10)
    await finder.find("cold", 1, TOOLS, [])
    model.broken = True
    assert await finder.compare("cold", ["weather"]) is None
    assert finder.note == "the model has left"


async def test_a_second_process_embeds_nothing_again(tmp_path: Path):
    await Finder(Meanings, tmp_path, patience_seconds=10, loading_seconds=10).find("cold", 1, TOOLS, [])
    model = Meanings()
    findings = await Finder(lambda: model, tmp_path, patience_seconds=10, loading_seconds=10).find(
        "cold", 1, TOOLS, []
    )
    assert (findings.found.method, model.read) == ("embeddings", ["cold"])


async def test_find_tools_says_how_it_searched_and_keeps_to_what_is_allowed(open_desk, tmp_path: Path):
    finder = Finder(Meanings, tmp_path / "vectors", patience_seconds=10, loading_seconds=10)
    async with open_desk(finder=finder) as desk:
        everything = await desk.bank.find_tools("save a note", 20)
        mine = Scope(servers=frozenset({"units", "clock"}))
        allowed = await relaying.find_tools("save a note", 20, desk.context, mine)
    assert (everything.method, everything.note) == ("embeddings", "")
    assert {hit.server for hit in everything.tools} == {"units", "calculator", "hashes", "notes", "clock"}
    assert {hit.server for hit in allowed.tools} == {"units", "clock"}


async def test_find_tools_without_a_model_says_so(open_desk):
    async with open_desk() as desk:
        found = await desk.bank.find_tools("save a note", 1)
    assert (found.method, found.note) == ("lexical", "no model for embeddings is configured")


async def test_a_skill_is_found_by_meaning_and_only_where_it_is_allowed(
    open_desk, tmp_path: Path, node, document
):
    number = {"type": "number"}
    adding = document(
        node("sum", "calculator/add", {"a": "$inputs.a", "b": "$inputs.b"}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": number, "b": number},
    )
    wanted = RepairRequest(inputs={"a": 3, "b": 2}, checks=Checks(("output.sum == `5`",)), save="mail_home")
    finder = Finder(Meanings, tmp_path / "vectors", patience_seconds=10, loading_seconds=10)
    async with open_desk(finder=finder) as desk:
        assert (await desk.bank.repair(adding, wanted)).skill == "mail_home"
        found = await desk.bank.find_skills("post a letter", 5)
        hidden = await using.find_skills("post a letter", 5, desk.context, Scope(skills=frozenset()))
    assert [skill.name for skill in found.skills] == ["mail_home"]
    assert found.skills[0].reasons[0].startswith("meaning: ")
    assert (hidden.skills, hidden.method) == ((), "embeddings")
