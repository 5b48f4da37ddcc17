"""How planners misname things: the words that damage puts in place of the right ones.

Written from what compact models are seen to write, apart from the synonyms that the repair knows:
a benchmark that broke things with the repair's own table would measure nothing.
"""

from __future__ import annotations

import re

__all__ = [
    "INVENTED_TOOLS",
    "OUTPUT_KEYS",
    "misnamed_arguments",
    "misnamed_nodes",
    "misnamed_tools",
    "wrong_choices",
]

OUTPUT_KEYS = ("result", "value", "output", "output_value", "data", "text", "content", "results")
"""Keys under which models expect an answer."""

INVENTED_TOOLS = ("write_file", "summarize_text", "send_email", "format_output", "read_file", "search_files")
"""Tools of needless steps in the recorded plans, and their like."""

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "a": ("x", "first", "first_number", "dividend", "num1"),
    "algorithm": ("hash_algorithm", "hash_type", "algo"),
    "b": ("y", "second", "second_number", "divisor", "num2"),
    "base": ("x", "number", "a"),
    "columns": ("fields", "column_definitions", "schema"),
    "conn_id": ("connection_id", "connection", "db_id"),
    "data": ("text", "input", "values", "content"),
    "data_parts": ("parts", "chunks", "data_list"),
    "database": ("path", "db_path", "db"),
    "expr": ("expression", "formula"),
    "exponent": ("power", "exp", "b"),
    "from_unit": ("from", "source_unit", "unit_from"),
    "iterations": ("rounds", "n_iterations"),
    "matrices": ("matrix", "inputs"),
    "max_count": ("limit", "n", "count"),
    "number": ("n", "value", "integer"),
    "operation": ("op", "method", "function"),
    "order_by": ("sort_by", "order"),
    "params": ("parameters", "values", "bindings"),
    "params_list": ("params", "rows", "values"),
    "password": ("passphrase", "secret"),
    "path": ("file_path", "filepath", "filename", "workbook"),
    "query": ("text", "search", "value"),
    "range": ("cell_range", "cells", "range_address"),
    "repo_path": ("path", "repository", "repo"),
    "revision": ("commit", "ref", "commit_hash"),
    "sheet": ("sheet_name", "worksheet"),
    "source_timezone": ("from_timezone", "source_tz", "from_tz"),
    "sql": ("query", "statement"),
    "sql_script": ("script", "sql", "statements"),
    "table_name": ("table", "name"),
    "target_timezone": ("to_timezone", "target_tz", "timezone"),
    "time": ("time_str", "source_time", "hour"),
    "to_unit": ("to", "target_unit", "unit_to"),
    "unit_type": ("type", "category", "unit_category"),
    "value": ("amount", "quantity", "number"),
}

_CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "unit": {
        "C": ("celsius_degrees", "degC.", "centigrade"),
        "F": ("fahrenheit_degrees", "degF.", "Fahr"),
        "J": ("Js", "joule_units"),
        "L": ("l", "ltrs"),
        "cm": ("cms", "centimeter(s)"),
        "ft": ("fts", "foot/feet"),
        "gal": ("us_gallons", "gals"),
        "in": ("inchs", "inch(es)"),
        "kWh": ("kwhr", "kilo_watt_hours"),
        "kg": ("kgs.", "kilogram(s)"),
        "km": ("kms", "kilometer(s)"),
        "km/h": ("kmh-1", "km per h"),
        "lb": ("lb.", "pounds_mass"),
        "m": ("mtr", "meter(s)"),
        "m/s": ("mps-1", "m per s"),
        "mi": ("mls", "mile(s)"),
        "min": ("mins.", "minute(s)"),
        "s": ("secs.", "second(s)"),
    },
    "unit_type": {
        "energy": ("power", "Energy"),
        "length": ("distance", "Length"),
        "mass": ("weight", "Mass"),
        "speed": ("velocity", "Speed"),
        "temperature": ("temp", "Temperature"),
        "time": ("duration", "Time"),
        "volume": ("capacity", "Volume"),
    },
    "operation": {
        "determinant": ("det", "determinants"),
        "mean": ("average", "avg"),
        "multiply": ("product", "matmul"),
        "stdev": ("standard_deviation", "std"),
        "totient": ("phi", "euler_totient"),
    },
    "algorithm": {"sha256": ("sha-2-256", "SHA2")},
    "sheet": {"Orders": ("Order", "Sales"), "Returns": ("Return", "Refunds"), "Team": ("Teams", "Staff")},
    "timezone": {"UTC": ("UTC+0", "Coordinated Universal Time")},
}
_FAMILIES = {
    "from_unit": "unit",
    "to_unit": "unit",
    "source_timezone": "timezone",
    "target_timezone": "timezone",
}

_VERBS: dict[str, tuple[str, ...]] = {
    "add": ("sum", "addition"),
    "analyze": ("compute", "check"),
    "calculate": ("compute", "evaluate"),
    "close": ("disconnect", "end"),
    "connect": ("open", "create"),
    "convert": ("transform", "change"),
    "create": ("make", "new"),
    "divide": ("division", "div"),
    "execute": ("run", "exec"),
    "find": ("search", "locate"),
    "hash": ("compute", "digest"),
    "insert": ("add", "append"),
    "list": ("get", "show"),
    "log": ("history", "commits"),
    "multiply": ("multiplication", "mul"),
    "power": ("pow", "exponentiate"),
    "read": ("get", "load"),
    "select": ("get", "fetch"),
    "show": ("view", "display"),
    "subtract": ("subtraction", "minus"),
}


def misnamed_arguments(name: str) -> tuple[str, ...]:
    """Return wrong names for an argument: words of like meaning, another case, a suffix."""
    camel = re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
    spelled = [camel, f"{name}_name", f"{name}_value", f"input_{name}"]
    return tuple(dict.fromkeys(n for n in (*_ARGUMENTS.get(name, ()), *spelled) if n != name))


def misnamed_tools(name: str) -> tuple[str, ...]:
    """Return plausible names of tools that a planner would invent for this one."""
    words = name.split("_")
    swapped = ["_".join((verb, *words[1:])) for verb in _VERBS.get(words[0], ())]
    swapped += ["_".join((*words[:-1], verb)) for verb in _VERBS.get(words[-1], ()) if len(words) > 1]
    rebuilt = ["_".join(words[1:]), "_".join(words[::-1])] if len(words) > 1 else [f"{name}_numbers"]
    number = [name[:-1] if name.endswith("s") else f"{name}s"]
    return tuple(dict.fromkeys(n for n in (*swapped, *rebuilt, *number) if n and n != name))


def misnamed_nodes(node_id: str) -> tuple[str, ...]:
    """Return ids that a planner would write for a node it gave another id."""
    return (f"{node_id}_result", f"{node_id}_node", f"get_{node_id}", "step_1")


def wrong_choices(argument: str, value: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return refused spellings of a value from a closed set; none where the set is not known to be closed.

    Args:
        argument: name of the argument.
        value: the right value.
        options: members of the schema's enum, empty when it has none.
    """
    family = _CHOICES.get(_FAMILIES.get(argument, argument), {})
    if options:
        guesses = (value.upper(), value.capitalize(), f"{value}s", value[:-1])
        return tuple(guess for guess in dict.fromkeys(guesses) if guess and guess not in options)
    return family.get(value, ())
