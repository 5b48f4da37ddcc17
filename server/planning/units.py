"""Spellings of units of measure, so that `l`, `L`, `litre` and `liters` can stand in for each other.

A table of common names, not a unit system: no value is ever converted here.
"""

from __future__ import annotations

from functools import cache

__all__ = ["unit_spellings"]

_UNITS: tuple[tuple[str, ...], ...] = (
    ("m", "meter", "meters", "metre", "metres"),
    ("km", "kilometer", "kilometers", "kilometre", "kilometres"),
    ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
    ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
    ("mi", "mile", "miles"),
    ("yd", "yard", "yards"),
    ("ft", "foot", "feet"),
    ("in", "inch", "inches"),
    ("nmi", "nautical_mile", "nautical_miles"),
    ("kg", "kilogram", "kilograms", "kilo", "kilos"),
    ("g", "gram", "grams", "gramme", "grammes"),
    ("mg", "milligram", "milligrams"),
    ("lb", "lbs", "pound", "pounds"),
    ("oz", "ounce", "ounces"),
    ("t", "ton", "tons", "tonne", "tonnes"),
    ("st", "stone", "stones"),
    ("L", "l", "liter", "liters", "litre", "litres"),
    ("mL", "ml", "milliliter", "milliliters", "millilitre", "millilitres"),
    ("gal", "gallon", "gallons", "us_gallon", "us_gallons"),
    ("qt", "quart", "quarts"),
    ("pt", "pint", "pints"),
    ("cup", "cups"),
    ("s", "sec", "second", "seconds"),
    ("min", "minute", "minutes"),
    ("h", "hr", "hour", "hours"),
    ("d", "day", "days"),
    ("wk", "week", "weeks"),
    ("C", "celsius", "°C", "degC"),
    ("F", "fahrenheit", "°F", "degF"),
    ("K", "kelvin"),
    ("J", "joule", "joules"),
    ("kJ", "kilojoule", "kilojoules"),
    ("cal", "calorie", "calories"),
    ("kcal", "kilocalorie", "kilocalories"),
    ("Wh", "watt_hour", "watt_hours"),
    ("kWh", "kilowatt_hour", "kilowatt_hours"),
    ("W", "watt", "watts"),
    ("kW", "kilowatt", "kilowatts"),
    ("hp", "horsepower"),
    ("Pa", "pascal", "pascals"),
    ("kPa", "kilopascal", "kilopascals"),
    ("bar", "bars"),
    ("psi",),
    ("atm", "atmosphere", "atmospheres"),
    ("m/s", "mps", "meters_per_second"),
    ("km/h", "kmh", "kph", "kilometers_per_hour"),
    ("mph", "miles_per_hour"),
    ("knot", "knots", "kn"),
    ("B", "byte", "bytes"),
    ("KB", "kilobyte", "kilobytes"),
    ("MB", "megabyte", "megabytes"),
    ("GB", "gigabyte", "gigabytes"),
    ("TB", "terabyte", "terabytes"),
    ("rad", "radian", "radians"),
    ("deg", "degree", "degrees"),
    ("ha", "hectare", "hectares"),
    ("acre", "acres"),
    ("m2", "square_meter", "square_meters"),
    ("ft2", "square_foot", "square_feet"),
)


@cache
def _by_spelling() -> dict[str, tuple[str, ...]]:
    exact = {spelling: names for names in _UNITS for spelling in names}
    folded = {spelling.lower(): names for names in reversed(_UNITS) for spelling in names}
    return folded | exact


def unit_spellings(name: str) -> tuple[str, ...]:
    """Return every spelling of the unit a name is, itself included; empty when it is none."""
    table = _by_spelling()
    plain = name.strip().lower().replace(" ", "_").replace("(s)", "").rstrip(".")
    singular = plain.removesuffix("s")
    return table.get(name) or table.get(plain) or table.get(singular, ())
