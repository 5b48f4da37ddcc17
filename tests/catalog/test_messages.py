"""Lines of an upstream: read as the decoder would, in pieces, and mended where they list tools."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.large_json import LARGE_TEXT, parse_large
from catalog.messages import MENDED_KEY, read_message

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(JSON, st.integers(1, 40), st.sampled_from([None, 0, 3]))
def test_a_text_read_in_pieces_is_what_the_decoder_reads(value: Any, window: int, indent: int | None) -> None:
    assert parse_large(json.dumps(value, indent=indent), window) == value


@given(JSON, st.integers(1, 40), st.data())
def test_a_text_that_the_decoder_refuses_is_refused(value: Any, window: int, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.sampled_from(["", "}", "]", ",", ":", '"', "{", "x"])) + text[at + 1 :]
    try:
        expected = json.loads(broken)
    except ValueError:
        with pytest.raises(ValueError, match=r".+"):
            parse_large(broken, window)
    else:
        assert parse_large(broken, window) == expected


@pytest.mark.parametrize("text", ["[" * 300_000, "", '{"a"', "[1,", "1 2"])
def test_what_has_no_end_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_large(text)


def answer(result: Any, **options: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, **options).encode()


@pytest.mark.anyio
@pytest.mark.parametrize("count", [3, LARGE_TEXT // 10])
async def test_a_message_is_the_same_whatever_its_size(count: int) -> None:
    result = {"rows": [{"n": n, "smile": "😀"} for n in range(count)]}
    message = await read_message(answer(result))
    assert message == types.JSONRPCResponse(jsonrpc="2.0", id=1, result=result)


@pytest.mark.anyio
@pytest.mark.parametrize("filler", ["", "x" * LARGE_TEXT], ids=["small", "large"])
@pytest.mark.parametrize(
    "broken",
    [b'"\\ud800"', b'"\xff"', b"[" * 100_000 + b"]" * 100_000, b"{"],
    ids=["lone", "bytes", "deep", "cut"],
)
async def test_only_a_list_of_tools_is_mended(broken: bytes, filler: str) -> None:
    def line(key: str) -> bytes:
        return answer({"filler": filler, key: ["HERE"]}).replace(b'"HERE"', broken)

    with pytest.raises(ValueError, match=r".+"):
        await read_message(line("content"))
    if broken == b"{":
        with pytest.raises(ValueError, match=r".+"):
            await read_message(line("tools"))
    else:
        message = await read_message(line("tools"))
        assert isinstance(message, types.JSONRPCResponse)
        assert len(message.result["_meta"][MENDED_KEY]) == 1
