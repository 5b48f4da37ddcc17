"""Functions of selectors and assertions: jmespath's own and ours, bounded and finite.

Ours: arithmetic, text, linear regular expressions, lists, dates, `approx` and `has_key`. What an
answer may cost is `bounds`; evaluating expressions is `interpreter`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NotRequired, Protocol, TypedDict, cast

from jmespath.functions import Functions, signature
from pydantic import JsonValue

from catalog.canonical import canonical_json
from skills_store.workflow.bounds import INTEGER_BITS, Meter, SelectorError, json_equal, json_type
from skills_store.workflow.regexes import find_all, find_first

__all__ = ["BoundedFunctions", "function_problem"]

Number = int | float
_DEEP = frozenset({"contains", "to_string", "unique"})
"""Functions that walk their arguments to the ground; all others look at elements."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


class _Types(TypedDict):
    types: list[str]
    variadic: NotRequired[bool]


_NUMBERS = _Types(types=["number"])
_TEXT = _Types(types=["string"])
_ANY = _Types(types=[])
_LIST = _Types(types=["array"])
_OBJECT = _Types(types=["object"])
_TEXTS = _Types(types=["array-string"])
_EXPRESSION = _Types(types=["expref"])


class _Expression(Protocol):
    expression: object

    def visit(self, node: object, value: JsonValue) -> JsonValue: ...


class BoundedFunctions(Functions):
    """jmespath's function table with ours; every call pays its meter for what it reads and makes."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def call_function(self, function_name: str, resolved_args: Iterable[Any]) -> JsonValue:
        """Return what the function makes of its arguments.

        Raises:
            SelectorError: it costs too much or yields no finite JSON.
            ValueError: unknown function, wrong number or types of arguments.
        """
        arguments = list(resolved_args)
        weigh = self._meter.weigh if function_name in _DEEP else self._meter.weigh_top
        for argument in arguments:
            weigh(argument)
        result = cast("JsonValue", super().call_function(function_name, arguments))
        self._meter.weigh_top(result)
        return result

    # Arithmetic

    @signature(_NUMBERS, _NUMBERS)
    def _func_add(self, left: Number, right: Number) -> Number:
        return left + right

    @signature(_NUMBERS, _NUMBERS)
    def _func_subtract(self, left: Number, right: Number) -> Number:
        return left - right

    @signature(_NUMBERS, _NUMBERS)
    def _func_multiply(self, left: Number, right: Number) -> Number:
        return left * right

    @signature(_NUMBERS, _NUMBERS)
    def _func_divide(self, left: Number, right: Number) -> Number:
        if right == 0:
            raise SelectorError(f"divide({left}, {right}): division by zero")
        exact = isinstance(left, int) and isinstance(right, int) and left % right == 0
        return left // right if exact else left / right

    @signature(_NUMBERS, _NUMBERS)
    def _func_modulo(self, left: Number, right: Number) -> Number:
        if right == 0:
            raise SelectorError(f"modulo({left}, {right}): division by zero")
        return left % right

    @signature(_NUMBERS, _NUMBERS)
    def _func_power(self, left: Number, right: Number) -> Number:
        if isinstance(left, int) and left.bit_length() * right > INTEGER_BITS:
            raise SelectorError(f"power({left}, {right}) is too large")
        result = cast("object", left**right)
        if isinstance(result, complex):
            raise SelectorError(f"power({left}, {right}) is no real number")
        return cast("Number", result)

    @signature(_NUMBERS, _NUMBERS)
    def _func_round(self, number: Number, digits: Number) -> Number:
        """Round half away from zero on the decimal text, as people do."""
        if digits != int(digits) or abs(digits) > 15:
            raise SelectorError(f"round: {digits} is no number of digits from -15 to 15")
        step = Decimal(1).scaleb(-int(digits))
        rounded = Decimal(str(number)).quantize(step, rounding=ROUND_HALF_UP)
        return int(rounded) if digits <= 0 or isinstance(number, int) else float(rounded)

    @signature(_NUMBERS, _NUMBERS, _NUMBERS)
    def _func_approx(self, left: Number, right: Number, tolerance: Number) -> bool:
        if tolerance < 0:
            raise SelectorError(f"approx: the tolerance {tolerance} is negative")
        return abs(left - right) <= tolerance

    # Text

    @signature(_TEXT)
    def _func_lower(self, text: str) -> str:
        return text.lower()

    @signature(_TEXT)
    def _func_upper(self, text: str) -> str:
        return text.upper()

    @signature(_TEXT)
    def _func_trim(self, text: str) -> str:
        return text.strip()

    @signature(_TEXT, _TEXT)
    def _func_split(self, text: str, separator: str) -> list[str]:
        if not separator:
            raise SelectorError("split: the separator is empty")
        return text.split(separator)

    @signature(_TEXT, _TEXT, _TEXT)
    def _func_replace(self, text: str, old: str, new: str) -> str:
        if not old:
            raise SelectorError("replace: the text to replace is empty")
        self._meter.spend(text.count(old) * (1 + len(new) // 64))
        return text.replace(old, new)

    @signature(_TEXT, _NUMBERS, _NUMBERS)
    def _func_substring(self, text: str, start: Number, end: Number) -> str:
        """Return the characters from `start` up to, without, `end`; negative ones count from the end."""
        return text[_whole("substring", start) : _whole("substring", end)]

    @signature(_TEXT, _NUMBERS, _TEXT)
    def _func_pad_left(self, text: str, width: Number, fill: str) -> str:
        if len(fill) != 1 or not 0 <= width <= 10_000:
            raise SelectorError("pad_left: one character to fill with and a width up to 10000")
        return text.rjust(_whole("pad_left", width), fill)

    @signature(_TEXT, _TEXT)
    def _func_regex_capture(self, text: str, pattern: str) -> str:
        found = find_first(pattern, text)
        if found is None:
            raise SelectorError(f"regex_capture: {pattern!r} is nowhere in {text[:80]!r}")
        return found

    @signature(_TEXT, _TEXT)
    def _func_regex_captures(self, text: str, pattern: str) -> list[str]:
        found: list[str] = []
        for capture in find_all(pattern, text):
            self._meter.spend(1)
            found.append(capture)
        return found

    @signature(_TEXT, _TEXT)
    def _func_regex_match(self, text: str, pattern: str) -> bool:
        return find_first(pattern, text) is not None

    @signature(_TEXT, _TEXTS)
    def _func_join(self, separator: str, texts: list[str]) -> str:
        self._meter.spend(len(texts) * (len(separator) // 64))
        return separator.join(texts)

    @signature(_ANY)
    def _func_to_string(self, value: JsonValue) -> str:
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    @signature(_ANY)
    def _func_to_number(self, value: JsonValue) -> Number | None:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        if not isinstance(value, str):
            return value
        match = _NUMBER.fullmatch(value.strip())
        if match is None or len(value) > 1_000:
            return None
        return float(match[0]) if match[1] or match[2] else int(match[0])

    # Lists and objects

    @signature(_Types(types=["array", "string"]), _ANY)
    def _func_contains(self, subject: list[JsonValue] | str, sought: JsonValue) -> bool:
        if isinstance(subject, list):
            return any(json_equal(item, sought) for item in subject)
        if not isinstance(sought, str):
            raise SelectorError("contains: a text contains only texts")
        return sought in subject

    @signature(_LIST)
    def _func_unique(self, items: list[JsonValue]) -> list[JsonValue]:
        """Keep the first of equal items."""
        first: dict[bytes, JsonValue] = {}
        for item in items:
            first.setdefault(canonical_json(item), item)
        return list(first.values())

    @signature(_Types(types=["array"], variadic=True))
    def _func_zip_lists(self, *lists: list[JsonValue]) -> list[list[JsonValue]]:
        if len({len(items) for items in lists}) > 1:
            raise SelectorError(f"zip_lists: lengths differ: {', '.join(str(len(i)) for i in lists)}")
        return [list(together) for together in zip(*lists, strict=True)]

    @signature(_LIST, _EXPRESSION)
    def _func_group_by(self, items: list[JsonValue], by: _Expression) -> list[dict[str, JsonValue]]:
        """Group by value, in order of first appearance: `[{key, items}]`."""
        groups: dict[bytes, tuple[JsonValue, list[JsonValue]]] = {}
        for item in items:
            key = by.visit(by.expression, item)
            self._meter.weigh(key)
            groups.setdefault(canonical_json(key), (key, []))[1].append(item)
        return [{"key": key, "items": members} for key, members in groups.values()]

    @signature(_LIST, _EXPRESSION)
    def _func_sum_by(self, items: list[JsonValue], by: _Expression) -> Number:
        numbers = [by.visit(by.expression, item) for item in items]
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise SelectorError(f"sum_by: {json_type(number)} is no number")
        return sum(cast("list[Number]", numbers))

    @signature(_LIST, _TEXT, _ANY)
    def _func_find_item(self, items: list[JsonValue], key: str, sought: JsonValue) -> JsonValue:
        """Return the one object of a list whose key has that value; none or several are an error."""
        found = [
            item for item in items if isinstance(item, dict) and key in item and json_equal(item[key], sought)
        ]
        if len(found) != 1:
            raise SelectorError(
                f"find_item: {len(found)} of {len(items)} items have {key!r} = {sought!r:.60}"
            )
        return found[0]

    @signature(_OBJECT, _TEXT)
    def _func_has_key(self, value: dict[str, JsonValue], key: str) -> bool:
        return key in value

    # Dates

    @signature(_TEXT, _TEXT, _TEXT)
    def _func_date_format(self, text: str, in_format: str, out_format: str) -> str:
        """Read a date by one `strptime` format (or `iso`) and write it by another."""
        read = _moment(text) if in_format == "iso" else datetime.strptime(text, in_format)
        return read.isoformat() if out_format == "iso" else read.strftime(out_format)

    @signature(_TEXT, _NUMBERS)
    def _func_date_add_days(self, text: str, days: Number) -> str:
        moment = _moment(text)
        later = moment + timedelta(days=days)
        if _is_date(text) and days != int(days):
            raise SelectorError(f"date_add_days: {text!r} has no time of day, {days} is no whole day")
        return later.date().isoformat() if _is_date(text) else later.isoformat()

    @signature(_TEXT, _TEXT)
    def _func_date_diff_days(self, start: str, end: str) -> Number:
        """Return the days from the first to the second date, negative when it lies before."""
        between = _moment(end) - _moment(start)
        whole = between % timedelta(days=1) == timedelta()
        return between.days if whole else between / timedelta(days=1)


def function_problem(name: str, arguments: int) -> str | None:
    """Return why a call of that function with so many arguments cannot be, or None."""
    table = cast("dict[str, dict[str, list[dict[str, object]]]]", BoundedFunctions.FUNCTION_TABLE)
    if name not in table:
        return f"unknown function {name}(); functions: {', '.join(sorted(table))}"
    declared = table[name]["signature"]
    if declared and declared[-1].get("variadic"):
        return None if arguments >= len(declared) else f"{name}() takes at least {len(declared)} arguments"
    return (
        None if arguments == len(declared) else f"{name}() takes {len(declared)} arguments, not {arguments}"
    )


def _whole(function: str, number: Number) -> int:
    if number != int(number):
        raise SelectorError(f"{function}: {number} is no whole number")
    return int(number)


def _is_date(text: str) -> bool:
    return "T" not in text and " " not in text and len(text) <= len("2000-01-01")


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise SelectorError(f"{text[:80]!r} is no ISO 8601 date") from error
