"""Typical values by the words in an argument's name, where its schema says nothing better.

General knowledge of how tools name things, not of any one server: an expression, a time zone, a
table in CSV. The words of a name are looked up whole first, then one by one from the last.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import JsonValue

from catalog.similarity import words

__all__ = ["is_control", "is_statement", "statements", "typical_values"]

_VALUES: Final[dict[str, tuple[JsonValue, ...]]] = {
    "expr": ("2 * (3 + 4)", "sqrt(16) + 1", "10 / 4"),
    "expression": ("2 * (3 + 4)", "sqrt(16) + 1", "x**2 + 2*x + 1"),
    "expressions": (["2 + 3", "4 * 5"], ["10 / 4", "7 - 2"]),
    "equation": ("x**2 - 4 = 0", "2*x + 3 = 7"),
    "formula": ("C6H12O6", "H2O", "=SUM(1,2)"),
    "smiles": ("CCO", "c1ccccc1"),
    "sequence": ("ATGCGTTAA", "GGCATTAC"),
    "unit": ("km", "m", "kg"),
    "from unit": ("km", "mile", "kg", "celsius"),
    "to unit": ("m", "km", "g", "fahrenheit"),
    "unit type": ("length", "mass", "temperature"),
    "category": ("length", "general"),
    "currency": ("EUR", "USD"),
    "timezone": ("Europe/Berlin", "Asia/Tokyo", "UTC"),
    "time zone": ("Europe/Berlin", "Asia/Tokyo", "UTC"),
    "tz": ("Europe/Berlin", "UTC"),
    "time": ("14:30", "09:00"),
    "date": ("2024-03-15", "2023-12-31"),
    "datetime": ("2024-03-15T14:30:00", "2023-12-31T23:59:59"),
    "timestamp": (1710513000, "2024-03-15T14:30:00Z"),
    "month": (3, 12),
    "day": (15, 1),
    "year": (2024, 1999),
    "hour": (14, 9),
    "cron": ("0 9 * * 1-5", "*/15 * * * *"),
    "text": ("Hello world, this is a short text.", "The quick brown fox jumps over the lazy dog."),
    "string": ("Hello World", "kayak"),
    "sentence": ("The quick brown fox jumps over the lazy dog.",),
    "word": ("listen", "kayak"),
    "message": ("hello", "a short message"),
    "content": ("first line\nsecond line", "short text"),
    "query": ("length", "time"),
    "sql": ("SELECT 1 AS one", "SELECT 2 + 3 AS five"),
    "pattern": ("[a-z]+", r"\d+"),
    "regex": ("[a-z]+", r"\d+"),
    "json": ('{"a": 1, "b": [2, 3]}', "[1, 2, 3]"),
    "csv": ("name,amount\nann,3\nbob,5\n", "x,y\n1,2\n"),
    "yaml": ("a: 1\nb: [2, 3]\n",),
    "xml": ("<a><b>1</b></a>",),
    "html": ("<p>Hello <b>world</b></p>",),
    "markdown": ("# Title\n\nSome *text*.",),
    "code": ("print(1 + 1)", "1 + 1"),
    "url": ("https://example.org/a?b=c", "https://example.com/"),
    "email": ("ann@example.org",),
    "phone": ("+49 30 901820",),
    "ip": ("192.0.2.10", "10.0.0.1"),
    "cidr": ("192.168.1.0/24", "10.0.0.0/8"),
    "network": ("192.168.1.0/24", "10.0.0.0/8"),
    "subnet": ("192.168.1.0/24", "10.0.0.0/8"),
    "mask": ("255.255.255.0", 24),
    "host": ("example.org",),
    "domain": ("example.org",),
    "color": ("#ff8800", "red"),
    "colour": ("#ff8800", "red"),
    "hex": ("ff8800", "#ff8800"),
    "country": ("DE", "Germany"),
    "city": ("Berlin", "Paris"),
    "language": ("en", "python"),
    "locale": ("en_US",),
    "name": ("sample", "alpha"),
    "algorithm": ("sha256", "md5"),
    "encoding": ("utf-8", "base64"),
    "base": (10, 2),
    "number": (12, 7, 42),
    "numbers": ([3, 1, 2], [4, 8, 15, 16, 23]),
    "value": (12, 7.5),
    "values": ([3, 1, 2], [4, 8, 15, 16, 23]),
    "data": ([3, 1, 2], [4, 8, 15, 16, 23], {"name": "ann"}, {"name": "bob"}),
    "row": ({"name": "ann"}, {"name": "bob"}),
    "record": ({"name": "ann"}, {"name": "bob"}),
    "columns": (
        [{"name": "id", "type": "INTEGER"}, {"name": "name", "type": "TEXT"}],
        [{"name": "name", "type": "TEXT"}, {"name": "amount", "type": "REAL"}],
        ["id", "name"],
    ),
    "table": ("sample", "item"),
    "where": ("id = 1", "name = 'ann'"),
    "matrix": ([[1, 2], [3, 4]], [[2, 0], [0, 2]]),
    "matrices": ([[[1, 2], [3, 4]], [[2, 0], [0, 2]]],),
    "vector": ([1, 2, 3], [4, 5, 6]),
    "operation": ("add", "mean", "sum"),
    "rate": (0.05, 5),
    "percent": (15, 20),
    "percentage": (15, 20),
    "principal": (1000, 2500),
    "amount": (100, 250),
    "price": (19.9, 100),
    "age": (40, 65),
    "weight": (70, 82.5),
    "height": (175, 180),
    "latitude": (52.52, 48.85),
    "longitude": (13.4, 2.35),
    "format": ("json", "text"),
    "path": ("sample.txt",),
    "uuid": ("6f1c1d1e-8a37-4a55-9d5b-0c6b1f0a2b11",),
}

_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "create": (
        "CREATE TABLE sample (id INTEGER, name TEXT)",
        "CREATE TABLE sample (id INTEGER, amount REAL)",
        "CREATE TABLE item (id INTEGER, city TEXT)",
    ),
    "insert": (
        "INSERT INTO sample (id, name) VALUES (1, 'ann')",
        "INSERT INTO sample (id, name) VALUES (2, 'bob')",
    ),
    "select": ("SELECT name FROM sample", "SELECT COUNT(*) AS n FROM sample", "SELECT 2 + 3 AS five"),
    "update": ("UPDATE sample SET name = 'eve' WHERE id = 1",),
    "delete": ("DELETE FROM sample WHERE id = 1",),
}
"""Statements in SQL by their verb, all about one table."""
_SQL: Final = re.compile(r"\bsql\b|\bsqlite\b|\bpostgres\w*\b|\bmysql\b", re.IGNORECASE)

_CONTROL: Final = frozenset(
    {
        "decimals",
        "depth",
        "digits",
        "indent",
        "limit",
        "max",
        "maximum",
        "min",
        "minimum",
        "offset",
        "page",
        "precision",
        "retries",
        "round",
        "seed",
        "skip",
        "timeout",
        "top",
        "ttl",
        "verbose",
        "width",
    }
)


def typical_values(argument: str) -> tuple[JsonValue, ...]:
    """Return values that an argument of this name usually takes, none where no word of it is known."""
    parts = words(argument)
    whole = " ".join(parts)
    for key in (argument.lower(), whole, *reversed(parts)):
        for spelt in (key, key.removesuffix("s")):
            if spelt in _VALUES:
                return _VALUES[spelt]
    return ()


def statements(said: str) -> tuple[str, ...]:
    """Return statements in SQL where a text speaks of it, those whose verb it names first; none elsewhere."""
    if not _SQL.search(said):
        return ()
    named = [word for word in re.findall("[a-z]+", said.lower()) if word in _STATEMENTS]
    verbs = list(dict.fromkeys(named)) or ["select", "create"]
    return tuple(statement for verb in verbs for statement in _STATEMENTS[verb])


def is_statement(value: JsonValue) -> bool:
    """Return whether a value is a statement rather than something that others may be told too."""
    first = value.split(maxsplit=1)[0].lower() if isinstance(value, str) and value.strip() else ""
    return first in _STATEMENTS and isinstance(value, str) and " " in value


def is_control(argument: str) -> bool:
    """Return whether an argument says how something is done rather than with what."""
    return any(part in _CONTROL for part in words(argument))
