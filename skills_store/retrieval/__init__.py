"""Finds skills for a task in words: an inverted index over the heads, in memory.

A score says how much of what the query asks for a skill covers, so that it means the same in a
bank of one skill and of thousands; bm25 does not, a word that half of a bank has counts nothing
there. Whether a hit is run, shown to a planner or left alone belongs to the router.
"""

from skills_store.retrieval.hits import SAME_PATTERN, Circumstances, SkillHit, confusable
from skills_store.retrieval.index import NOT_RECALLED, SkillIndex
from skills_store.retrieval.skill_text import skill_entry

__all__ = [
    "NOT_RECALLED",
    "SAME_PATTERN",
    "Circumstances",
    "SkillHit",
    "SkillIndex",
    "confusable",
    "skill_entry",
]
