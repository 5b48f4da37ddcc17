"""Finds tools and skills by words: one index of names and prose, with meaning where there is a model.

`entries` says which texts of a tool or skill are searched, `lexical` finds words (FTS5),
`goals` splits a long request, `index` joins words with the vectors of `catalog.embeddings`.
"""

from catalog.search.entries import Entry, EntryKind, tool_entries, tool_key
from catalog.search.goals import sub_goals
from catalog.search.index import EVERYTHING, Found, FoundEntry, Scope, SearchIndex, SearchMethod
from catalog.search.tool_index import Hit, ToolIndex

__all__ = [
    "EVERYTHING",
    "Entry",
    "EntryKind",
    "Found",
    "FoundEntry",
    "Hit",
    "Scope",
    "SearchIndex",
    "SearchMethod",
    "ToolIndex",
    "sub_goals",
    "tool_entries",
    "tool_key",
]
