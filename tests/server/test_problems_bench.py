"""Problems of code and mathematics: their formats, which answers are the same, a model's figures."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from server.backends.errors import BackendTimeout, BackendUnavailable
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.bench.errors import BenchError
from server.bench.kept import Kept
from server.bench.problems import is_same_answer, load_problems
from server.bench.problems_bench import ProblemsOptions, render_problems_report, run_problems_bench
from server.bench.request import BenchRequest
from server.bench.run import run_bench
from server.provisioning.errors import TasksRejected
from server.sandbox.sandbox import open_sandbox

pytestmark = pytest.mark.anyio

HUMAN_EVAL = {
    "task_id": "Test/0",
    "prompt": 'def twice(n: int) -> int:\n    """Return twice a number."""\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * n\n",
    "test": "METADATA = {}\n\ndef check(candidate):\n    assert candidate(2) == 4\n"
    "    assert candidate(5) == 10, 'five'\n    assert candidate(-1) == -2\n",
}
MBPP = {
    "task_id": 601,
    "text": "Write a function to find the largest of three numbers.",
    "code": "def largest(a, b, c):\n  return max(a, b, c)",
    "test_list": ["assert largest(1,2,3) == 3", "assert largest(9,2,3)==9", "assert largest(1,7,3) == 7"],
    "test_setup_code": "",
    "challenge_test_list": [],
}
GSM8K = {
    "question": "Ann has 3 eggs and buys 1,200 more. How many has she?",
    "answer": "3 + 1200\n#### 1,203",
}
MATH = {
    "problem": "What is half of $\\frac{3}{2}$?",
    "solution": "It is $\\boxed{\\frac{3}{4}}$.",
    "answer": "\\frac{3}{4}",
    "subject": "Prealgebra",
    "level": 1,
    "unique_id": "test/prealgebra/1.json",
}
ALL = (HUMAN_EVAL, MBPP, GSM8K, MATH)


def written(tmp_path, *lines):
    file = tmp_path / "problems.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_file_is_read_line_by_line_whatever_its_set(tmp_path):
    code, more, eggs, half = load_problems(written(tmp_path, *ALL))
    assert (code.set, code.entry) == ("HumanEval", "twice")
    assert "assert twice(5) == 10" in code.tests
    assert (more.set, more.entry, more.id) == ("MBPP", "largest", "MBPP/601")
    assert "largest(9,2,3)" not in more.asked  # the first test alone is told
    assert (eggs.set, eggs.answer) == ("GSM8K", "1,203")
    assert (half.set, half.id, half.answer) == ("MATH", "test/prealgebra/1.json", "\\frac{3}{4}")


def test_a_gzipped_file_and_a_list_are_read_too(tmp_path):
    zipped, listed = tmp_path / "p.jsonl.gz", tmp_path / "p.json"
    zipped.write_bytes(gzip.compress(json.dumps(MBPP).encode() + b"\n\n"))
    listed.write_text(json.dumps([GSM8K, MATH]))
    assert [problem.set for problem in (*load_problems(zipped), *load_problems(listed))] == [
        "MBPP",
        "GSM8K",
        "MATH",
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(
            {"instruction": "x"}, "problem 1 is of no known set.*'instruction'|has instruction", id="unknown"
        ),
        pytest.param([1], "problem 1 is no object", id="no-object"),
        pytest.param({**HUMAN_EVAL, "prompt": 3}, "problem 1, prompt", id="type"),
        pytest.param({**HUMAN_EVAL, "test": "def check(:"}, "problem 1: invalid syntax", id="syntax"),
        pytest.param({**MBPP, "test_list": ["x = 1"]}, "no assert calls a function", id="no-assert"),
        pytest.param({**GSM8K, "answer": "7"}, "does not end in '#### NUMBER'", id="no-final"),
    ],
)
def test_a_line_that_is_none_is_told_with_its_place(tmp_path, line, said):
    with pytest.raises(TasksRejected, match=said):
        load_problems(written(tmp_path, line))


@pytest.mark.parametrize("content", [b"", b"\x1f\x8bnot gzip", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_none_is_refused(tmp_path, content):
    file = tmp_path / "f"
    file.write_bytes(content)
    with pytest.raises(TasksRejected):
        load_problems(file)


@pytest.mark.parametrize(
    ("given", "right", "same"),
    [
        ("1203", "1,203", True),
        ("$1,203.00", "1203", True),
        ("so it is \\boxed{\\dfrac{3}{4}}.", "\\frac34", True),
        ("0.75", "\\frac{3}{4}", True),
        ("-\\frac{1}{2}", "-0.5", True),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})", True),
        ("90", "90^\\circ", True),
        ("\\text{Evelyn}", "Evelyn", True),
        ("1204", "1,203", False),
        ("\\frac{4}{3}", "\\frac{3}{4}", False),
        ("x+1", "x-1", False),
        ("\\frac{1}{0}", "1", False),
        ("", "3", False),
    ],
)
def test_answers_are_the_same_where_the_value_is(given, right, same):
    assert is_same_answer(given, right) is same


RIGHT = {
    "twice": "def twice(n: int) -> int:\n    return 2 * n\n",
    "largest": "def largest(a: int, b: int, c: int) -> int:\n    return max(a, b, c)\n",
}


def model(code, *, eggs="1203", half="3/4"):
    def answer(request):
        asked = request.messages[-1].text
        for name, source in code.items():
            if name in asked:
                return json.dumps({"source": source})
        value = eggs if "eggs" in asked else half
        return f"I think so.\n{json.dumps({'reasoning': 'r', 'answer': value})}"

    return ScriptedBackend(answer, name="scripted:solver")


async def asked(open_desk, tmp_path, backend):
    problems = load_problems(written(tmp_path, *ALL))
    async with open_sandbox() as sandbox, open_desk() as desk:
        bank = Bank(replace(desk.context, sandbox=sandbox))
        report = await run_problems_bench(ProblemsOptions(problems, backend), bank)
        states = {head.name: head.state for head in desk.store.heads()}
    return report, states


async def test_right_answers_count_and_right_functions_become_skills(open_desk, tmp_path):
    report, states = await asked(open_desk, tmp_path, model(RIGHT))
    assert [(one.name, one.right, one.problems) for one in report.sets] == [
        ("HumanEval", 1, 1),
        ("MBPP", 1, 1),
        ("GSM8K", 1, 1),
        ("MATH", 1, 1),
    ]
    assert states == {"p_test_0": "active", "p_mbpp_601": "active"}
    assert all(one.tokens > 0 for one in report.sets)
    assert "Asked of scripted:solver" in render_problems_report(report)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("def twice(n: int) -> int:\n    return 3 * n\n", id="wrong"),
        pytest.param("import os\ndef twice(n: int) -> int:\n    return 2 * n\n", id="banned"),
        pytest.param("def other(n: int) -> int:\n    return 2 * n\n", id="another"),
        pytest.param("def twice(n: int) -> int:\n    while True:\n        pass\n", id="endless"),
        pytest.param("not python", id="no-python"),
    ],
)
async def test_a_function_that_fails_is_wrong_and_no_skill(open_desk, tmp_path, source):
    wrong = model({**RIGHT, "twice": source}, eggs="12", half="unknown")
    report, states = await asked(open_desk, tmp_path, wrong)
    assert [one.right for one in report.sets] == [0, 1, 0, 0]
    assert states == {"p_mbpp_601": "active"}


async def test_an_assert_that_compares_with_no_literal_is_left_out_and_told(open_desk, tmp_path):
    test = "def check(candidate):\n    assert candidate(2) == 2 ** 2\n    assert candidate(3) == 6\n"
    nothing = "def check(candidate):\n    for n in range(9):\n        assert candidate(n) == n + n\n"
    lines = [{**HUMAN_EVAL, "test": test}, {**HUMAN_EVAL, "task_id": "Test/1", "test": nothing}]
    async with open_sandbox() as sandbox, open_desk() as desk:
        bank = Bank(replace(desk.context, sandbox=sandbox))
        options = ProblemsOptions(load_problems(written(tmp_path, *lines)), model(RIGHT))
        (report,) = (await run_problems_bench(options, bank)).sets
    assert (report.problems, report.right, report.partly, report.left_out) == (2, 1, 1, 1)


async def test_a_right_function_without_types_is_right_and_no_skill(open_desk, tmp_path):
    report, states = await asked(
        open_desk, tmp_path, model({**RIGHT, "twice": "def twice(n):\n    return 2 * n\n"})
    )
    assert (report.sets[0].right, report.sets[0].kept) == (1, 0)
    assert "p_test_0" not in states


async def test_without_a_file_or_a_model_the_command_says_what_it_needs(tmp_path):
    with pytest.raises(BenchError, match="a file with --tasks and a model with --model"):
        await run_bench(BenchRequest("problems", tasks=written(tmp_path, GSM8K)))


async def test_a_problem_without_an_answer_in_time_is_counted_and_those_before_it_are_kept(
    open_desk, tmp_path
):
    problems = load_problems(written(tmp_path, GSM8K, MATH))
    slow = ScriptedBackend([json.dumps({"answer": "1203"}), BackendTimeout("no answer within 300 s")])
    keep = tmp_path / "kept.jsonl"
    async with open_desk() as desk:
        options = ProblemsOptions(problems, slow, kept=Kept(keep))
        first = await run_problems_bench(options, desk.bank)
        silent = ScriptedBackend([])
        again = await run_problems_bench(replace(options, model=silent, kept=Kept(keep)), desk.bank)
    assert [(one.name, one.right, one.late) for one in first.sets] == [("GSM8K", 1, 0), ("MATH", 0, 1)]
    assert (again.sets, silent.requests) == (first.sets, [])
    assert "| MATH | 0/1 | 0 | 0 | 1 | 0 | 0 |" in render_problems_report(first)


async def test_a_model_that_cannot_be_asked_ends_it(open_desk, tmp_path):
    gone = ScriptedBackend([BackendUnavailable("nobody answers")])
    async with open_desk() as desk:
        with pytest.raises(BackendUnavailable, match="nobody answers"):
            await run_problems_bench(
                ProblemsOptions(load_problems(written(tmp_path, GSM8K)), gone), desk.bank
            )
