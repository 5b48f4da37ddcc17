"""The search benchmark: what it asks, what counts as the same tool, and how shares are taken."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from catalog.search import SearchIndex, tool_entries
from catalog.tools import Tool, ToolId
from server.bench.recall import recalled, searching
from server.bench.same_tools import same_sets
from server.bench.search_bench import SearchOptions, run_search_bench
from server.bench.search_data import PARAPHRASES, WHOLE_TASKS, Request, load_labelled, load_medcalc
from server.bench.search_report import render_search_report
from server.provisioning.errors import TasksRejected

pytestmark = pytest.mark.anyio


def tool(server: str, name: str, description: str) -> Tool:
    return Tool(ToolId(server, name), {"type": "object"}, description=description)


def test_the_labelled_set_is_of_five_thousand_tools_and_every_wanted_one_is_among_them():
    labelled = load_labelled()
    ids = {tool.id for tool in labelled.tools}
    sources = Counter(request.source for request in labelled.requests)
    assert len(labelled.tools) == len(ids) == 5_000
    assert {wanted for request in labelled.requests for wanted in request.wanted} <= ids
    assert sources.keys() > WHOLE_TASKS
    assert min(sources.values()) >= 40
    held = sum(request.is_held_out for request in labelled.requests)
    assert 0.45 < held / len(labelled.requests) < 0.55


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("read_file", "Reads a file."), ("readFile", "Loads text from disk."), True),
        (("search", "Finds papers on arXiv."), ("search", "Looks for a place on a map."), False),
        (("search", "Finds papers on arXiv."), ("search", "Finds papers."), True),
        (("alpha", "Counts the words of a text."), ("beta", "counts the Words of a text"), True),
        (("get_user", "Returns a user by id."), ("get_user_by_id", "Returns one user by id."), True),
        (("get_user", "Returns a user by id."), ("delete_user", "Removes a user for good."), False),
        (("todo_add", "x"), ("add_todo", "y"), True),
    ],
)
def test_tools_are_the_same_by_rule(one: tuple[str, str], other: tuple[str, str], same: bool):
    first, second = tool("a", *one), tool("b", *other)
    sets = same_sets([first, second])
    assert (sets[first.id] == sets[second.id]) is same


async def test_tools_that_do_the_same_take_one_place_and_serve_for_each_other():
    tools = [tool(f"s{n}", "count_words", f"Counts words of a text {n}.") for n in range(6)]
    tools.append(tool("far", "word_lengths", "Says how long words of a text are."))
    search = searching(SearchIndex(tool_entries(tools)), None)
    wants = [Request("BFCL", "1", "count words of a text", (ToolId("s5", "count_words"),))]
    wants.append(Request("BFCL", "2", "count words of a text", (ToolId("far", "word_lengths"),)))
    found = await recalled(search, wants, same_sets(tools))
    assert (found.one_thing.at_1, found.one_thing.at_5) == (0.5, 1.0)
    assert found.one_thing.at_5_each_counted == 0.5


async def test_a_whole_task_is_given_five_hits_for_each_sub_goal_and_paraphrases_stand_apart():
    tools = [tool("a", "rename_sheet", "Renames a sheet."), tool("a", "delete_rows", "Deletes rows.")]
    text = "Rename the sheet of last year to archive, then delete the empty rows below it."
    task = Request("τ²-bench", "1", text, tuple(tool.id for tool in tools))
    own = Request(PARAPHRASES, "1", "nothing of it", (tools[0].id,))
    found = await recalled(searching(SearchIndex(tool_entries(tools)), None), [task, own], same_sets(tools))
    assert (found.whole_tasks.at_1, found.one_thing.at_5) == (1.0, 0.0)
    assert found.sources["τ²-bench"].wanted == 2


def test_medcalc_questions_are_read_from_its_rows(tmp_path: Path):
    rows = [
        {"Calculator Name": "Ideal Body Weight", "Question": "What is the ideal weight?", "Row": 1},
        {"Calculator Name": "Ideal Body Weight", "Question": "What is the ideal weight?", "Row": 2},
        {"Calculator Name": "of another server", "Question": "What else?"},
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    (request,) = load_medcalc(tmp_path / "rows.json")
    assert request.wanted == (ToolId("mb-medcalc", "ibw_abw_calculator"),)
    assert request.wanted[0] in {tool.id for tool in load_labelled().tools}


@pytest.mark.parametrize("text", ["{", "[]", '[{"Question": "a"}]', '{"a": 1}'])
def test_a_file_without_medcalc_rows_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(TasksRejected, match=r"rows\.json"):
        load_medcalc(path)


async def test_a_small_run_reports_every_way_and_renders():
    report = await run_search_bench(SearchOptions(tools=1, requests=2, fastmcp_requests=1))
    assert report.quick
    assert report.ways["words"].sources.keys() >= WHOLE_TASKS
    assert 0.5 <= report.ways["words"].one_thing.at_10 <= 1
    assert "FastMCP" in render_search_report(report) or report.fastmcp is None
    assert report.left_out == ("MedCalc-Bench: give its rows with --tasks FILE",)


def test_the_committed_data_stays_small_and_names_its_sources():
    folder = Path(__file__).parents[2] / "server" / "bench" / "data"
    own = ("search.json.gz", "paraphrases.json", "same_tools.json")
    assert sum((folder / name).stat().st_size for name in own) < 1_000_000
    told = (folder / "README.md").read_text("utf-8")
    content = json.loads(gzip.decompress((folder / "search.json.gz").read_bytes()))
    assert all(source.split()[0] in told for source, *_ in content["requests"])
