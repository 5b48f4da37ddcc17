"""Functions read as text: signature, lint, constant bodies, tests."""

from __future__ import annotations

import pytest

from skills_store.code.examples import CodeExample, parse_examples
from skills_store.code.lint import constant_body, lint_code
from skills_store.code.reading import MAX_SOURCE_BYTES, read_function
from skills_store.errors import MalformedCode


def test_a_signature_is_read_from_annotations():
    source = (
        "from typing import Literal, Optional\n"
        "def _helper(x): return x\n"
        "def area(width: float, sides: list[int], unit: Literal['m', 'km'] = 'm',"
        " *, label: Optional[str] = None, extra: dict[str, float] | None = None) -> tuple[int, str]:\n"
        '    """Says how large it is.\n\n    More."""\n'
        "    return 1, 'a'\n"
    )
    function = read_function(source)
    assert function.entry == "area"
    assert function.says == "Says how large it is."
    assert function.takes == {
        "type": "object",
        "properties": {
            "width": {"type": "number"},
            "sides": {"type": "array", "items": {"type": "integer"}},
            "unit": {"enum": ["m", "km"], "default": "m"},
            "label": {"type": ["string", "null"], "default": None},
            "extra": {
                "anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["width", "sides"],
        "additionalProperties": False,
    }
    assert function.gives == {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "minItems": 2,
        "maxItems": 2,
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param("def f(:\n", "line 1: no Python", id="no Python"),
        pytest.param("x = 1\n", "there is no function", id="no function"),
        pytest.param("def f(a) -> int:\n    return a\n", "annotate a", id="no annotation"),
        pytest.param("def f(a: int):\n    return a\n", "say what f returns", id="no result"),
        pytest.param("def f(a: set) -> int:\n    return 1\n", "set has no JSON Schema", id="a set"),
        pytest.param("def f(*a: int) -> int:\n    return 1\n", "takes [*]args", id="star"),
        pytest.param("def f(a: int = []) -> int:\n    return 1\n", "a default is", id="mutable default"),
        pytest.param("#" * (MAX_SOURCE_BYTES + 1), "more than", id="too long"),
        pytest.param("(" * 5000, "no Python", id="too deep"),
    ],
)
def test_what_cannot_be_a_skill_says_why(source, said):
    with pytest.raises(MalformedCode, match=said):
        read_function(source)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("import os", "may not import os", id="module"),
        pytest.param("import os.path as p", "may not import os", id="submodule"),
        pytest.param("from urllib import request", "may not import urllib.request", id="from package"),
        pytest.param("eval('1')", "may not call eval", id="call"),
        pytest.param("().__class__", "may not reach for __class__", id="dunder"),
        pytest.param("import time", "gives something else every time", id="clock module"),
        pytest.param("datetime.datetime.now()", r"now\(\) gives something else", id="clock call"),
        pytest.param("global kept", "keeps nothing between calls", id="global"),
    ],
)
def test_the_lint_names_the_line(line, said):
    found = lint_code(f"def f() -> int:\n    {line}\n    return 1\n")
    assert len(found) == 1
    assert found[0].startswith("line 2: ")
    assert __import__("re").search(said, found[0])


def test_the_lint_lets_plain_code_through():
    source = "import json, math, re\ndef f(a: int) -> str:\n    return json.dumps(math.floor(a))\n"
    assert lint_code(source) == ()


@pytest.mark.parametrize(
    ("body", "constant"),
    [
        pytest.param("return 7", "7", id="number"),
        pytest.param("return []", "[]", id="empty list"),
        pytest.param("return dict()", "dict()", id="empty call"),
        pytest.param('"""Doc."""\n    pass', "nothing", id="nothing"),
        pytest.param("return a", None, id="input"),
        pytest.param("b = 1\n    return b", None, id="two statements"),
    ],
)
def test_a_body_that_is_constant_is_found(body, constant):
    assert constant_body(f"def f(a):\n    {body}\n", "f") == constant


def test_tests_come_from_asserts_that_are_never_run():
    function = read_function("def f(a: int, b: list[int], c: bool = False) -> bool:\n    return True\n")
    text = (
        "import os\nos.remove('/')\nassert f(1, [2, 3]) == True\nassert f(1, b=[], c=True)\n"
        "def check(candidate):\n    assert not candidate(-1, [0])\n    assert other(1) == 2\n"
    )
    assert set(map(str, parse_examples(text, function))) == {
        str(CodeExample({"a": 1, "b": [2, 3]}, True)),
        str(CodeExample({"a": 1, "b": [], "c": True}, True)),
        str(CodeExample({"a": -1, "b": [0]}, False)),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("x = 1", "there is no test", id="nothing"),
        pytest.param("assert f(open('x')) == 1", "no literal", id="a call as argument"),
        pytest.param("assert f(1, 2, 3) == 1", "takes 1 argument", id="too many"),
        pytest.param('[{"inputs": {}}]', "expected", id="JSON without expected"),
        pytest.param("[1", "tests", id="broken JSON"),
    ],
)
def test_tests_that_say_nothing_are_refused(text, said):
    function = read_function("def f(a: int) -> int:\n    return a\n")
    with pytest.raises(MalformedCode, match=said):
        parse_examples(text, function)
