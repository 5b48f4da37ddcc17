"""JSON Schema without surprises: bounded, never fetching, and answering what a planner asks.

Validation and coercion of values, questions about schemas (types, pointers, whether one feeds
another), the dialect that strict hosts accept, and sample values.
"""

from catalog.schema.coercion import Coerced, coerce
from catalog.schema.feeding import feeds
from catalog.schema.location import Lookup, lookup
from catalog.schema.patterns import without_unusable_patterns
from catalog.schema.portable import lint_schema, portable_schema
from catalog.schema.sampling import samples
from catalog.schema.validation import SchemaProblem, check_schema, is_valid, problems
from catalog.schema.variants import inline_refs, json_type, types

__all__ = [
    "Coerced",
    "Lookup",
    "SchemaProblem",
    "check_schema",
    "coerce",
    "feeds",
    "inline_refs",
    "is_valid",
    "json_type",
    "lint_schema",
    "lookup",
    "portable_schema",
    "problems",
    "samples",
    "types",
    "without_unusable_patterns",
]
