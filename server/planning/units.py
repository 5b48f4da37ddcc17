"""Spellings of units of measure, so that `l`, `L`, `litre` and `liters` can stand in for each other.

A table of common names, not a unit system: no value is ever converted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache

from pydantic import JsonValue

from catalog.similarity import words

__all__ = [
    "asks_for_kind",
    "listed_spelling",
    "near_units",
    "unit_kind",
    "unit_spellings",
    "units_disagree",
    "with_kind",
]

_UNITS: dict[str, tuple[tuple[str, ...], ...]] = {
    "length": (
        ("m", "meter", "meters", "metre", "metres"),
        ("km", "kilometer", "kilometers", "kilometre", "kilometres"),
        ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
        ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
        ("mi", "mile", "miles"),
        ("yd", "yard", "yards"),
        ("ft", "foot", "feet"),
        ("in", "inch", "inches"),
        ("nmi", "nautical_mile", "nautical_miles"),
    ),
    "mass": (
        ("kg", "kilogram", "kilograms", "kilo", "kilos"),
        ("g", "gram", "grams", "gramme", "grammes"),
        ("mg", "milligram", "milligrams"),
        ("lb", "lbs", "pound", "pounds"),
        ("oz", "ounce", "ounces"),
        ("t", "ton", "tons", "tonne", "tonnes"),
        ("st", "stone", "stones"),
    ),
    "volume": (
        ("L", "l", "liter", "liters", "litre", "litres"),
        ("mL", "ml", "milliliter", "milliliters", "millilitre", "millilitres"),
        ("gal", "gallon", "gallons", "us_gallon", "us_gallons"),
        ("qt", "quart", "quarts"),
        ("pt", "pint", "pints"),
        ("cup", "cups"),
    ),
    "time": (
        ("s", "sec", "second", "seconds"),
        ("min", "minute", "minutes"),
        ("h", "hr", "hour", "hours"),
        ("d", "day", "days"),
        ("wk", "week", "weeks"),
    ),
    "temperature": (
        ("C", "celsius", "°C", "degC"),
        ("F", "fahrenheit", "°F", "degF"),
        ("K", "kelvin"),
    ),
    "energy": (
        ("J", "joule", "joules"),
        ("kJ", "kilojoule", "kilojoules"),
        ("cal", "calorie", "calories"),
        ("kcal", "kilocalorie", "kilocalories"),
        ("Wh", "watt_hour", "watt_hours"),
        ("kWh", "kilowatt_hour", "kilowatt_hours"),
    ),
    "power": (
        ("W", "watt", "watts"),
        ("kW", "kilowatt", "kilowatts"),
        ("hp", "horsepower"),
    ),
    "pressure": (
        ("Pa", "pascal", "pascals"),
        ("kPa", "kilopascal", "kilopascals"),
        ("bar", "bars"),
        ("psi",),
        ("atm", "atmosphere", "atmospheres"),
    ),
    "speed": (
        ("m/s", "mps", "meters_per_second"),
        ("km/h", "kmh", "kph", "kilometers_per_hour"),
        ("mph", "miles_per_hour"),
        ("knot", "knots", "kn"),
    ),
    "data": (
        ("B", "byte", "bytes"),
        ("KB", "kilobyte", "kilobytes"),
        ("MB", "megabyte", "megabytes"),
        ("GB", "gigabyte", "gigabytes"),
        ("TB", "terabyte", "terabytes"),
    ),
    "angle": (
        ("rad", "radian", "radians"),
        ("deg", "degree", "degrees"),
    ),
    "area": (
        ("ha", "hectare", "hectares"),
        ("acre", "acres"),
        ("m2", "square_meter", "square_meters"),
        ("ft2", "square_foot", "square_feet"),
    ),
}


@cache
def _by_spelling() -> dict[str, tuple[str, tuple[str, ...]]]:
    named = [(kind, names) for kind, units in _UNITS.items() for names in units]
    exact = {spelling: (kind, names) for kind, names in named for spelling in names}
    folded = {spelling.lower(): (kind, names) for kind, names in reversed(named) for spelling in names}
    return folded | exact


def unit_spellings(name: str) -> tuple[str, ...]:
    """Return every spelling of the unit a name is, itself included; empty when it is none."""
    found = _found(name)
    return found[1] if found else ()


def listed_spelling(name: str, listed: Iterable[str]) -> str | None:
    """Return which of the values that a schema lists is the unit a name is, None where none is."""
    meant = unit_spellings(name)
    return next(
        (value for value in listed if value == name or (meant and unit_spellings(value) == meant)), None
    )


def sibling_units(name: str) -> tuple[str, ...]:
    """Return the other units that measure the same, each in the spelling most like that of the name."""
    found = _found(name)
    if found is None:
        return ()
    kind, names = found
    style = names.index(name) if name in names else 0
    return tuple(other[min(style, len(other) - 1)] for other in _UNITS[kind] if other != names)


def unit_kind(name: str) -> str | None:
    """Return what a unit measures (`length`, `mass`, …), None when the name is no unit."""
    found = _found(name)
    return found[0] if found else None


def near_units(name: str) -> tuple[str, ...]:
    """Return spellings of units that a name is a misspelling of, the nearest first."""
    near = get_close_matches(name.lower(), _by_spelling(), n=3, cutoff=0.7)
    return tuple(dict.fromkeys(spelling for match in near for spelling in _by_spelling()[match][1]))


def units_disagree(arguments: Mapping[str, JsonValue]) -> bool:
    """Return whether literal arguments name units, or kinds of them, that do not go together."""
    texts = [value for value in arguments.values() if isinstance(value, str)]
    kinds = {kind for text in texts if (kind := text if text in _UNITS else unit_kind(text))}
    return len(kinds) > 1


def asks_for_kind(argument: str) -> bool:
    """Return whether an argument's name asks what is measured, not in what."""
    return bool(set(words(argument)) & {"type", "category", "kind", "dimension", "quantity"})


def with_kind(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the arguments with what is measured said as the units among them say it, where they agree."""
    asking = [name for name in arguments if asks_for_kind(name)]
    texts = [v for name, v in arguments.items() if name not in asking and isinstance(v, str)]
    kinds = {kind for text in texts if (kind := unit_kind(text))}
    return {**arguments, **dict.fromkeys(asking, kinds.pop())} if len(kinds) == 1 else dict(arguments)


def _found(name: str) -> tuple[str, tuple[str, ...]] | None:
    table = _by_spelling()
    plain = name.strip().lower().replace(" ", "_").replace("(s)", "").rstrip(".")
    singular = plain.removesuffix("s")
    return table.get(name) or table.get(plain) or table.get(singular)
