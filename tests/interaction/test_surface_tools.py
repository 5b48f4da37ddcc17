# ruff: noqa: E501  (snapshots of what a client reads)
"""The tool list and single calls, in process: what needs no transport."""

from __future__ import annotations

import json
from typing import Any

import mcp.types as types
import pytest
from fake_bank import FakeBank, skill
from inline_snapshot import snapshot
from mcp import MCPError

from catalog.schema import is_valid, lint_schema
from server.surface import BUILTIN_NAMES, listed_names
from server.surface.arguments import grouped
from server.surface.builtin_tools import BUILTIN_TOOLS
from server.surface.icons import SKILL_ICONS
from server.surface.listing import PAGE_SIZE

pytestmark = pytest.mark.anyio
BUILTINS = [pytest.param(tool, id=name) for name, tool in BUILTIN_TOOLS.items()]


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


@pytest.mark.parametrize("tool", BUILTINS)
def test_an_always_there_tool_is_portable_and_says_what_it_does(tool: types.Tool):
    hints = tool.annotations
    assert lint_schema(tool.input_schema) == []
    assert tool.input_schema["additionalProperties"] is False
    assert all("description" in known for known in tool.input_schema["properties"].values())
    assert hints is not None
    explicit = (
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
        hints.open_world_hint,
    )
    assert None not in explicit
    assert tool.title == hints.title
    assert tool.icons


@pytest.mark.parametrize("tool", BUILTINS)
def test_the_example_in_a_description_fits_the_input_schema(tool: types.Tool):
    assert tool.description is not None
    example = json.loads(tool.description.partition("Example: ")[2])
    assert is_valid(tool.input_schema, example)


async def test_always_there_tools_come_first_and_skills_follow_by_name(in_process, bank: FakeBank):
    for name in ("zebra", "aardvark"):
        bank.publish(name)
    async with in_process() as client:
        listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == [
        *BUILTIN_NAMES,
        "aardvark",
        "broken",
        "crash",
        "double",
        "wrong",
        "zebra",
    ]


async def test_a_skill_is_listed_with_its_schemas_hints_and_an_example(in_process):
    async with in_process() as client:
        listed = await client.list_tools()
    tool = next(tool for tool in listed.tools if tool.name == "double")
    assert tool.model_dump(by_alias=True, exclude_none=True) == snapshot(
        {
            "name": "double",
            "title": "Double",
            "icons": [{"src": SKILL_ICONS[0].src, "mimeType": "image/svg+xml", "sizes": ["any"]}],
            "description": """\
Doubles a number.
Use it when: a number must be doubled
Beware: not for text
Example: {"value": 3} returns {"doubled": 6}\
""",
            "inputSchema": {
                "type": "object",
                "properties": {"value": {"type": "number", "description": "What to double."}},
                "required": ["value"],
                "additionalProperties": False,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"doubled": {"type": "number"}},
                "required": ["doubled"],
            },
            "annotations": {
                "title": "Double",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }
    )


async def test_a_long_list_comes_in_pages_and_no_tool_is_lost_or_doubled(in_process, bank: FakeBank):
    bank.skills = {f"skill_{number:03}": skill(f"skill_{number:03}") for number in range(250)}
    names: list[str] = []
    pages, cursor = 0, None
    async with in_process() as client:
        while pages == 0 or cursor is not None:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor, pages = page.next_cursor, pages + 1
    total = 250 + len(BUILTIN_NAMES)
    assert (pages, len(names), len(set(names))) == (3, total, total)


async def test_a_page_follows_its_cursor_when_the_tool_behind_it_is_gone(in_process, bank: FakeBank):
    bank.skills = {f"skill_{number:03}": skill(f"skill_{number:03}") for number in range(120)}
    async with in_process() as client:
        first = await client.list_tools()
        del bank.skills[first.tools[-1].name]
        bank.changes += 1
        second = await client.list_tools(cursor=first.next_cursor)
    assert second.tools[0].name == f"skill_{PAGE_SIZE - len(BUILTIN_NAMES):03}"


async def test_a_cursor_that_is_not_ours_is_refused(in_process):
    async with in_process() as client:
        with pytest.raises(MCPError) as raised:
            await client.list_tools(cursor="§")
    assert raised.value.code == types.INVALID_PARAMS


def test_a_skill_named_like_an_always_there_tool_is_listed_under_another_name():
    assert listed_names(["solve", "other", "skill__solve"]) == snapshot(
        {"other": "other", "skill__solve": "skill__solve", "solve": "skill__solve_8af0f9f0"}
    )


async def test_a_renamed_skill_is_called_by_its_listed_name(in_process, bank: FakeBank):
    bank.publish("solve")
    async with in_process() as client:
        result = await client.call_tool("skill__solve", {"value": 4})
    assert result.structured_content == {"doubled": 8.0}


async def test_a_skill_answers_its_outputs_mirrored_as_text_with_the_trace_id(in_process):
    async with in_process() as client:
        result = await client.call_tool("double", {"value": 21})
    assert result.is_error is False
    assert result.structured_content == {"doubled": 42.0}
    assert json.loads(text_of(result)) == result.structured_content
    assert result.meta is not None
    assert result.meta["io.skillbank/trace"] == "t1"


@pytest.mark.parametrize(
    ("alone", "options", "used"),
    [
        ({"judge": True, "budget_tokens": 5}, {}, {"budget_tokens": 5, "judge": True}),
        ({"judge": True}, {"judge": False}, {"judge": False}),
        ({"answer": None}, {"steps": 3}, {"steps": 3}),
    ],
    ids=["alone", "both", "null"],
)
def test_options_of_solve_are_taken_by_themselves_as_older_lists_have_them(
    alone: dict[str, Any], options: dict[str, Any], used: dict[str, Any]
):
    assert grouped("solve", {"task": "x", **alone, "options": options}) == {"task": "x", "options": used}
    assert grouped("repair_workflow", alone) == alone


async def test_exact_scalar_text_counts_as_the_number_it_is(in_process):
    async with in_process() as client:
        result = await client.call_tool("double", {"value": "2.5"})
    assert result.structured_content == {"doubled": 5.0}


BAD_ARGUMENTS: list[Any] = [
    pytest.param(
        "double",
        {"value": "much", "valu": 1},
        snapshot(
            """\
double was not called: its arguments have 2 problems.
- /value: "much" is not of type "number". Allowed: {"type": "number", "description": "What to double."}
- /: 'valu' is not expected. Allowed names: value
Arguments: value (required).\
"""
        ),
        id="wrong-type-and-unknown-name",
    ),
    pytest.param(
        "double",
        None,
        snapshot("""\
double was not called: its arguments have 1 problem.
- /: "value" is a required property. Allowed: {"type": "number", "description": "What to double."}
Arguments: value (required).\
"""),
        id="none-given",
    ),
    pytest.param(
        "solve",
        {"task": "x", "options": {"steps": 0, "driver": "fly", "stepz": 1}},
        snapshot("""\
solve was not called: its arguments have 3 problems.
- /options/steps: 0 is less than the minimum of 1. Allowed: {"minimum": 1, "type": "integer"}
- /options/driver: "fly" is not one of "react". Allowed: ["react"]
- /options: 'stepz' is not expected. Allowed names: budget_seconds, budget_calls, budget_tokens, answer, judge, driver, context, steps
Arguments: task (required), inputs, assertions, output_schema, detail, save_as, options.\
"""),
        id="grouped",
    ),
    pytest.param(
        "find_tools",
        {"query": "x", "limit": 99},
        snapshot("""\
find_tools was not called: its arguments have 1 problem.
- /limit: 99 is greater than the maximum of 50. Allowed: {"default": 10, "description": "Most hits.", "maximum": 50, "minimum": 1, "type": "integer"}
Arguments: query (required), limit.\
"""),
        id="out-of-range",
    ),
    pytest.param(
        "run_workflow",
        {"workflow": {"name": "w", "inputs": {}, "nodes": [{"tool": {"server": "s"}}], "outputs": {}}},
        snapshot("""\
run_workflow was not called: its arguments have 2 problems.
- /workflow/nodes/0: "id" is a required property. Allowed: {"type": "string"}
- /workflow/nodes/0/tool: "tool" is a required property. Allowed: {"type": "string"}
Arguments: workflow (required), inputs, assertions, output_schema, detail.\
"""),
        id="deep-in-a-document",
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "expected"), BAD_ARGUMENTS)
async def test_bad_arguments_are_listed_with_what_is_allowed(in_process, tool, arguments, expected):
    async with in_process() as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error is True
    assert text_of(result) == expected


async def test_a_null_for_an_optional_argument_counts_as_left_out(in_process):
    async with in_process() as client:
        result = await client.call_tool("describe_skill", {"name": "double", "version": None})
    assert result.structured_content["name"] == "double"


async def test_an_unknown_tool_is_a_protocol_error_that_names_the_next_step(in_process):
    async with in_process() as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("doubel", {"value": 1})
    assert raised.value.code == types.INVALID_PARAMS
    assert str(raised.value) == snapshot(
        "Unknown tool: doubel. Perhaps double. tools/list has every tool; find_skills searches the skills."
    )


async def test_a_failed_skill_names_fault_node_and_remedy(in_process):
    async with in_process() as client:
        result = await client.call_tool("broken", {"value": 1})
    assert result.is_error is True
    assert result.structured_content is None
    assert text_of(result) == snapshot("""\
broken: Status failed: it did not run to its end.
- tool_error in node twice: no such city. Try math/multiply alone with call_tool, or mend the workflow with repair_workflow.\
""")


async def test_outputs_that_break_the_output_schema_are_no_success(in_process):
    async with in_process() as client:
        result = await client.call_tool("wrong", {"value": 1})
    assert result.is_error is True
    assert text_of(result) == snapshot(
        'wrong answered what its output schema does not allow (/doubled: "six" is not of type "number"). report_outcome can say so.'
    )


async def test_the_text_of_an_unforeseen_exception_stays_in_the_log(in_process, caplog):
    async with in_process() as client:
        result = await client.call_tool("crash", {"value": 1})
    assert result.is_error is True
    assert text_of(result) == snapshot("crash failed inside skillbank; its log has the details.")
    assert "secret" in caplog.text


async def test_a_bank_that_cannot_be_read_leaks_nothing_either(in_process, bank: FakeBank, caplog):
    async with in_process() as client:
        bank.changes += 1
        bank.skills = None  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(MCPError) as raised:
            await client.list_tools()
    assert (raised.value.code, str(raised.value)) == (types.INTERNAL_ERROR, "Internal error")
    assert "TypeError" in caplog.text


async def test_a_typed_error_of_the_bank_tells_the_next_step(in_process):
    async with in_process() as client:
        result = await client.call_tool("call_skill", {"name": "nobody"})
    assert (result.is_error, text_of(result)) == snapshot(
        (True, "no skill 'nobody'. find_skills lists what there is.")
    )


async def test_an_outcome_of_an_unknown_result_is_refused(in_process):
    async with in_process() as client:
        result = await client.call_tool("report_outcome", {"trace_id": "t9", "passed": True})
    assert (result.is_error, text_of(result)) == snapshot((True, "No result with trace_id 't9' is kept."))


async def test_a_failed_report_keeps_its_structured_content(in_process):
    async with in_process() as client:
        result = await client.call_tool("call_skill", {"name": "broken"})
    assert result.is_error is True
    assert result.structured_content["faults"][0]["kind"] == "tool_error"
    summary, mirror = result.content
    assert "no such city" in summary.text
    assert json.loads(mirror.text) == result.structured_content


REPORT_CALLS = [
    pytest.param("solve", {"task": "double three"}, id="solve"),
    pytest.param("run_workflow", {"workflow": skill("w").workflow.to_json()}, id="run"),
    pytest.param("repair_workflow", {"workflow": skill("w").workflow.to_json()}, id="repair"),
    pytest.param("find_skills", {"query": "doub"}, id="find-skills"),
    pytest.param("describe_skill", {"name": "double"}, id="describe"),
    pytest.param("call_skill", {"name": "double", "arguments": {"value": 1}}, id="call-skill"),
    pytest.param("find_tools", {"query": "multiply"}, id="find-tools"),
    pytest.param("report_outcome", {"trace_id": "t1", "passed": True}, id="report"),
    pytest.param("job", {"action": "poll"}, id="jobs"),
]


@pytest.mark.parametrize(("tool", "arguments"), REPORT_CALLS)
async def test_every_report_fits_the_schema_that_is_read_of_its_tool(in_process, tool, arguments):
    async with in_process() as client:
        await client.list_tools()
        result = await client.call_tool(tool, arguments)
        (answers,) = (await client.read_resource("catalog://answers")).contents
    schemas = json.loads(answers.text)
    assert sorted(schemas) == sorted(name for name in BUILTIN_NAMES if name != "call_tool")
    schema = schemas[tool]
    assert result.is_error is False
    assert is_valid(schema, result.structured_content)
    assert json.loads(text_of(result)) == result.structured_content


async def test_search_options_reach_the_bank(in_process):
    arguments = {
        "workflow": skill("w").workflow.to_json(),
        "budget_calls": 7,
        "assertions": ["output.doubled == `6`"],
    }
    async with in_process() as client:
        result = await client.call_tool("repair_workflow", arguments)
    assert result.structured_content["outputs"] == {"calls": 7}
    assert result.structured_content["status"] == "unverified"
    assert result.is_error is True


async def test_an_upstream_answer_passes_through_equal(in_process):
    arguments = {"text": "hi", "deep": {"list": [1, None, "x"]}}
    async with in_process() as client:
        result = await client.call_tool(
            "call_tool", {"server": "any", "tool": "echo", "arguments": arguments}
        )
    assert result.structured_content == arguments
    assert result.is_error is False
    assert [block.model_dump(by_alias=True, exclude_none=True) for block in result.content] == [
        {"type": "text", "text": "one", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": {"a/b": [1]}},
    ]
    assert result.meta is not None
    assert result.meta["upstream.example/key"] == {"n": 1}
    assert result.meta["io.skillbank/trace"] == "t3"


async def test_a_failed_upstream_answer_passes_through_equal(in_process):
    async with in_process() as client:
        result = await client.call_tool("call_tool", {"server": "any", "tool": "fail"})
    assert (result.is_error, text_of(result)) == (True, "no")
    assert result.meta is not None
    assert result.meta["a/b"] == 1


async def test_an_upstream_refusal_becomes_words(in_process):
    async with in_process() as client:
        result = await client.call_tool("call_tool", {"server": "any", "tool": "refuse"})
    assert (result.is_error, text_of(result)) == snapshot(
        (True, "any/refuse failed (unknown_tool): Unknown tool: refuse. find_tools lists what there is.")
    )


async def test_structured_content_that_is_no_object_reaches_both_eras(in_process, era: str):
    async with in_process() as client:
        result = await client.call_tool("call_tool", {"server": "any", "tool": "list"})
    if era == "legacy":
        assert (result.structured_content, text_of(result)) == (None, "[1, 2]")
    else:
        assert result.structured_content == [1, 2]


async def test_progress_grows_towards_a_total(in_process):
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    arguments = {"workflow": skill("w").workflow.to_json(), "budget_calls": 5}
    async with in_process() as client:
        await client.call_tool("repair_workflow", arguments, progress_callback=note)
    values = [done for done, _, _ in seen]
    assert values == sorted(set(values))
    assert seen[-1] == (6.0, 405, "repair: candidate 3")
