"""Problems of HumanEval, MBPP, GSM8K and MATH-500 from files in the formats they are published in.

The files are yours: none comes with this package. A line says by its keys which set it is of.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from server.provisioning.errors import TasksRejected

__all__ = [
    "CodeProblem",
    "MathProblem",
    "Problem",
    "ProblemSet",
    "is_same_answer",
    "kinds_of",
    "load_problems",
]

ProblemSet = Literal["HumanEval", "MBPP", "GSM8K", "MATH"]

_LONGEST_LINE = 1 << 20
_FINAL = re.compile(r"####\s*(.+?)\s*$")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|mbox)\{([^{}]*)\}")
_DROPPED = re.compile(r"\\(?:left|right|!|,|;|:|\s)|\\(?:%|\$)|[\s$°]|\^\\circ|\^\{\\circ\}")
_FRACTION = re.compile(r"-?\\frac\{(-?\d+)\}\{(-?\d+)\}")


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """A function to be written."""

    id: str
    set: ProblemSet
    asked: str
    """What a model is told."""
    entry: str
    tests: str
    """Asserts over `entry`, which a model is not told but for those in `asked`."""


@dataclass(frozen=True, slots=True)
class MathProblem:
    """A question with one short answer."""

    id: str
    set: ProblemSet
    asked: str
    answer: str


Problem = CodeProblem | MathProblem


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _HumanEval(_Line):
    task_id: str
    prompt: str
    entry_point: str
    test: str

    def problem(self, number: int) -> Problem:
        del number
        told = f"Complete this function:\n\n{self.prompt}"
        return CodeProblem(self.task_id, "HumanEval", told, self.entry_point, self._tests())

    def _tests(self) -> str:
        """Return the asserts of `check(candidate)` as asserts over the function."""
        tree = ast.parse(self.test)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id == "candidate":
                node.id = self.entry_point
        return "\n".join(ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Assert))


class _Mbpp(_Line):
    task_id: int | str
    text: str | None = None
    prompt: str | None = None
    test_list: list[str]

    def problem(self, number: int) -> Problem:
        del number
        tests = [test.strip() for test in self.test_list]
        entry = next((name for test in tests if (name := _called(test))), None)
        if entry is None:
            raise ValueError("test_list: no assert calls a function")
        told = f"{self.text or self.prompt}\nIt has to pass: {tests[0]}"
        return CodeProblem(f"MBPP/{self.task_id}", "MBPP", told, entry, "\n".join(tests))


def _called(test: str) -> str | None:
    """Return the function that an assert compares the answer of."""
    for node in ast.walk(ast.parse(test)):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
            return node.left.func.id if isinstance(node.left.func, ast.Name) else None
    return None


class _Gsm8k(_Line):
    question: str
    answer: str

    def problem(self, number: int) -> Problem:
        found = _FINAL.search(self.answer)
        if found is None:
            raise ValueError("answer: it does not end in '#### NUMBER'")
        return MathProblem(f"GSM8K/{number}", "GSM8K", self.question, found[1])


class _Math(_Line):
    problem_: str
    answer: str
    unique_id: str | None = None

    def problem(self, number: int) -> Problem:
        return MathProblem(self.unique_id or f"MATH/{number}", "MATH", self.problem_, self.answer)


def load_problems(path: Path) -> list[Problem]:
    """Return the problems of a file: JSON lines, plain or gzipped, or a JSON list.

    Raises:
        TasksRejected: it cannot be read, or a line is of none of the sets; says which.
    """
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
        lines = json.loads(text) if text.lstrip()[:1] == "[" else [*_lines(text)]
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise TasksRejected(f"{path}: {error}") from error
    problems = [_problem(line, number, path) for number, line in enumerate(lines, 1)]
    if not problems:
        raise TasksRejected(f"{path}: it holds no problem")
    return problems


def _lines(text: str) -> Iterator[JsonValue]:
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > _LONGEST_LINE:
            raise ValueError(f"line {number} has more than {_LONGEST_LINE} characters")
        try:
            if line.strip():
                yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number} is no JSON: {error}") from error


def _problem(line: JsonValue, number: int, path: Path) -> Problem:
    place = f"{path}: problem {number}"
    if not isinstance(line, dict):
        raise TasksRejected(f"{place} is no object")
    try:
        match line:
            case {"entry_point": _, "test": _}:
                return _HumanEval.model_validate(line).problem(number)
            case {"test_list": _}:
                return _Mbpp.model_validate(line).problem(number)
            case {"question": _, "answer": _}:
                return _Gsm8k.model_validate(line).problem(number)
            case {"problem": said, "answer": _}:
                return _Math.model_validate({**line, "problem_": said}).problem(number)
            case _:
                raise TasksRejected(
                    f"{place} is of no known set: HumanEval has 'entry_point' and 'test', MBPP 'test_list',"
                    f" GSM8K 'question', MATH 'problem'; this one has {', '.join(line) or 'nothing'}"
                )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise TasksRejected(f"{place}, {'/'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, SyntaxError, RecursionError) as error:
        raise TasksRejected(f"{place}: {error}") from error


def is_same_answer(given: str, right: str) -> bool:
    """Return whether two short answers are the same number, or the same LaTeX but for how it is set."""
    one, other = _plain(given), _plain(right)
    if one == other:
        return bool(other)
    numbers = [_number(one), _number(other)]
    return None not in numbers and numbers[0] == numbers[1]


def _plain(answer: str) -> str:
    boxed = _boxed(answer)
    text = _TEXT.sub(r"\1", boxed).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    text = _DROPPED.sub("", text).replace("\\%", "").removesuffix(".")
    return re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", text)


def _boxed(answer: str) -> str:
    """Return what the last `\\boxed{…}` holds, the whole answer where there is none."""
    _, found, rest = answer.rpartition("\\boxed{")
    if not found:
        return answer
    depth = 1
    for at, letter in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth == 0:
            return rest[:at]
    return rest


def _number(text: str) -> Fraction | None:
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text).removesuffix("%")
    if found := _FRACTION.fullmatch(plain):
        sign = -1 if plain.startswith("-") else 1
        return sign * Fraction(int(found[1]), int(found[2])) if int(found[2]) else None
    try:
        return Fraction(plain)
    except (ValueError, ZeroDivisionError):
        return None


def kinds_of(problems: Sequence[Problem]) -> tuple[ProblemSet, ...]:
    """Return the sets that problems are of, in the order of their first."""
    return tuple(dict.fromkeys(problem.set for problem in problems))
