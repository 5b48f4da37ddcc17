"""One index over tools and skills: words, meanings, sub-goals, and what each principal may know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.embeddings import EmbeddingsUnavailable, Vectors, make_vectors
from catalog.search import Entry, Scope, SearchIndex, sub_goals, tool_entries
from catalog.tools import Tool, ToolId

np = pytest.importorskip("numpy")

MEANINGS = (
    ("temperature", "heat", "warm", "cold", "weather"),
    ("mail", "letter", "post", "message", "send"),
    ("history", "log", "past", "blame"),
    ("money", "price", "currency", "euro"),
)


class Meanings:
    """Knows four things; a text's vector counts how often it speaks of each."""

    dimensions = len(MEANINGS) + 1

    def __init__(self, name: str = "four-things", broken: bool = False) -> None:
        self.name = name
        self.broken = broken
        self.read: list[str] = []

    def embed(self, texts: Sequence[str]):
        if self.broken:
            raise EmbeddingsUnavailable("the model has left")
        self.read += texts
        rows = [[*(float(sum(w in text.lower() for w in of)) for of in MEANINGS), 0.1] for text in texts]
        matrix = np.array(rows or np.zeros((0, self.dimensions)), dtype=np.float32)
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def tool(server: str, name: str, description: str, **properties: object) -> Tool:
    schema = {"type": "object", "properties": properties}
    return Tool(ToolId(server, name), schema, description=description)  # pyright: ignore[reportArgumentType]


TOOLS = [
    tool("sky", "forecast", "Says how warm it will be.", place={"type": "string"}),
    tool("post", "dispatch", "Delivers a letter.", urgency={"enum": ["express", "economy"]}),
    tool("git", "git_log", "Shows what was committed."),
    tool("bank", "exchange", "Converts a currency.", sourceCurrency={"type": "string"}),
    tool("bank", "balance", "Says what is on an account."),
]
SKILL = Entry(
    key="skill:write_home",
    kind="skill",
    owner="write_home",
    names=frozenset({"write_home"}),
    name="write home",
    title="",
    description="Sends a message to the family.",
    parameters="",
    values="",
)


def an_index(folder: Path, embedder: Meanings, entries: Sequence[Entry] | None = None) -> SearchIndex:
    index = SearchIndex([*tool_entries(TOOLS), SKILL] if entries is None else entries)
    index.understand(make_vectors(folder, embedder, index.texts))
    return index


def keys(index: SearchIndex, query: str, embedder: Meanings | None = None, **how: object) -> list[str]:
    found = index.search(query, embedder=embedder, **how)  # pyright: ignore[reportArgumentType]
    return [hit.entry.key for hit in found.hits]


def test_a_meaning_is_found_in_other_words_and_only_by_meaning(tmp_path: Path):
    model = Meanings()
    index = an_index(tmp_path, model)
    assert keys(index, "is it cold", model)[0] == "tool:sky/forecast"
    assert keys(index, "is it cold") == []


def test_the_answer_says_what_was_compared(tmp_path: Path):
    model = Meanings()
    index = an_index(tmp_path, model)
    assert index.search("letter", embedder=model).method == "embeddings"
    assert index.search("letter").method == "lexical"
    index.update(tool_entries(TOOLS[:2]))
    assert index.search("letter", embedder=model).method == "lexical"


def test_an_exact_name_is_first_whatever_means_more(tmp_path: Path):
    model = Meanings()
    hits = an_index(tmp_path, model).search("git_log", embedder=model).hits
    assert (hits[0].entry.key, hits[0].score, hits[0].reasons) == ("tool:git/git_log", 1.0, ("exact name",))


def test_tools_and_skills_are_found_by_one_search_and_apart_by_kind(tmp_path: Path):
    model = Meanings()
    index = an_index(tmp_path, model)
    assert keys(index, "send mail", model)[:2] == ["skill:write_home", "tool:post/dispatch"]
    assert keys(index, "send mail", model, kind="skill") == ["skill:write_home"]
    assert "skill:write_home" not in keys(index, "send mail", model, kind="tool")


@pytest.mark.parametrize(
    ("query", "found"),
    [("source currency", "tool:bank/exchange"), ("economy", "tool:post/dispatch")],
    ids=["a parameter, split at case", "a value of an enum"],
)
def test_parameters_and_values_are_searched(query: str, found: str):
    assert keys(SearchIndex(tool_entries(TOOLS)), query)[0] == found


def test_what_a_principal_may_not_know_is_neither_found_nor_counted(tmp_path: Path):
    model = Meanings()
    index = an_index(tmp_path, model)
    mine = Scope(servers=frozenset({"sky", "git"}), skills=frozenset())
    for embedder in (model, None):
        answer = index.search("exchange", 10, scope=mine, embedder=embedder)
        assert {hit.entry.owner for hit in answer.hits} <= {"sky", "git"}
        assert answer.searched == 2
    assert index.search("exchange", 10, embedder=model).searched == 6


def test_a_long_request_is_answered_part_by_part(tmp_path: Path):
    model = Meanings()
    request = "Find out how warm it will be in Oslo tomorrow, then send a long letter about it to my mother."
    answer = an_index(tmp_path, model).search(request, 4, embedder=model)
    assert answer.goals == sub_goals(request)
    assert len(answer.goals) == 2
    assert {"tool:sky/forecast", "tool:post/dispatch"} <= {hit.entry.key for hit in answer.hits}
    assert {hit.goal for hit in answer.hits} <= {None, *answer.goals}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("convert celsius", ["convert celsius"]),
        (
            "Please read the sales table of March. Compute the mean of the amounts and send the sum to Ann.",
            [
                "Please read the sales table of March.",
                "Compute the mean of the amounts",
                "send the sum to Ann.",
            ],
        ),
        (
            "I would like to know whether the weather is fine in Oslo or in Bergen at noon",
            ["I would like to know whether the weather is fine in Oslo or in Bergen at noon"],
        ),
        (
            "Hi there! Rename the sheet of last year to archive, then delete the empty rows below it.",
            ["Rename the sheet of last year to archive", "delete the empty rows below it."],
        ),
    ],
    ids=["short", "several", "one", "greetings"],
)
def test_sub_goals_are_the_parts_that_ask_for_something(text: str, parts: list[str]):
    assert list(sub_goals(text)) == parts


def test_only_new_and_changed_texts_are_embedded(tmp_path: Path):
    model = Meanings()
    index = an_index(tmp_path, model)
    model.read.clear()
    changed = [replace(TOOLS[0], description="Says how cold it will be."), *TOOLS[1:-1]]
    assert index.update([*tool_entries(changed), SKILL]) == 2
    index.understand(make_vectors(tmp_path, model, index.texts))
    assert model.read == list(tool_entries(changed[:1])[0].meanings)
    assert keys(index, "weather", model)[0] == "tool:sky/forecast"
    assert "tool:bank/balance" not in keys(index, "account", model)


def test_an_update_finds_what_an_index_made_anew_finds():
    updated = SearchIndex(tool_entries(TOOLS[:3]))
    updated.update([*tool_entries(TOOLS[1:]), SKILL])
    anew = SearchIndex([*tool_entries(TOOLS[1:]), SKILL])
    for query in ("letter", "currency account", "message family", "git_log", "warm"):
        assert keys(updated, query) == keys(anew, query)


def test_what_most_tools_of_a_server_open_with_is_not_searched():
    told = ("Starts the engine.", "Locks all doors.", "Shows the fuel.")
    same = "This tool belongs to the vehicle system, which is large. "
    tools = [tool("car", f"t{n}", same + text) for n, text in enumerate(told)]
    assert [entry.description for entry in tool_entries(tools)] == list(told)
    assert tool_entries(tools[:2])[0].description == tools[0].description


def test_a_word_nobody_uses_is_looked_for_by_its_synonyms():
    index = SearchIndex(tool_entries([tool("fs", "list_directory", "Lists what is in a directory.")]))
    assert keys(index, "folder") == ["tool:fs/list_directory"]


def test_without_entries_nothing_is_found(tmp_path: Path):
    model = Meanings()
    assert an_index(tmp_path, model, []).search("anything", embedder=model).hits == ()


def test_vectors_that_lack_a_text_are_refused(tmp_path: Path):
    model = Meanings()
    index = an_index(tmp_path, model)
    with pytest.raises(KeyError):
        index.understand(Vectors(model.embed(["a"]), {"a": 0}))
