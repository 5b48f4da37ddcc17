"""The words that tell what a tool does to the world: verbs, parameters, turns of phrase.

Words are as `catalog.similarity.words` cuts them: lowered, without the ending of a plural. What
follows from them belongs to `catalog.effect_profile`.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "AGENTS",
    "ARCHIVES",
    "ARITHMETIC",
    "ASKS",
    "CODE",
    "DOUBTFUL",
    "FILES",
    "FLEETING",
    "KEPT",
    "MATHS",
    "OUTSIDE",
    "PLACES",
    "PURE",
    "READS",
    "SAYS_KEPT",
    "SAYS_READS",
    "SAYS_WRITES",
    "SINKS",
    "SQL",
    "STATE",
    "TEXTS",
    "TRANSFORMS",
    "WRITES",
]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRITES: Final = _set(
    "accept acknowledge activate add advance alter append apply approve archive assign attach authorize "
    "ban block book buy cancel change checkout cherry clean clear click clone close commit complete "
    "configure connect consume copy create deactivate delete deploy dequeue destroy disable disconnect "
    "dispatch drag drop edit email enable enqueue erase exchange fill finish flush follow forget grant "
    "import init initialize insert install invite kill launch link lock login logout mark migrate modify "
    "move mute navigate notify open optimize overwrite patch pause pay persist pin play pop post press "
    "publish purge push put rebase record recover refund register reject release remember remove rename "
    "reopen replace reply reschedule reset restart restore resume retry revert revoke rollback save "
    "schedule sell send set share shutdown sign sleep spawn stage start stash stop store submit subscribe "
    "swap switch sync tag terminate toggle touch track train transfer trash type undo unlink unlock "
    "unmerge unpin unregister unset unstage untag update upgrade upload upsert vacuum wait wipe withdraw "
    "write"
)
DOUBTFUL: Final = _set(
    "ask backup build call capture compile compress delegate deserialize download draw dump eval exec "
    "execute export fit generate handle invoke load make manage merge perform plan plot process "
    "query render request route run scan select serialize simulate step test think use visualize"
)
READS: Final = _set(
    "analyse analyze browse count describe detail diff discover display enumerate explain extract fetch find "
    "forecast get grep head info inspect list locate lookup measure monitor peek predict preview read recall "
    "retrieve return search show stat statistic status summarize tail trace tree version view watch"
)
PURE: Final = _set(
    "average base64 calculate check classify compare compute concatenate convert cosine decode derive "
    "detect determine differentiate divide echo encode escape estimate evaluate expand exponentiate factor "
    "factorize floor format hash integrate invert lowercase mean multiply negate normalize parse power "
    "reverse round simplify slugify solve sort split sqrt subtract sum tokenize transform translate "
    "transpose trim truncate uppercase validate verify"
)
ARITHMETIC: Final = _set("add")
AGENTS: Final = {
    "analyser": "analyse",
    "analyzer": "analyze",
    "calculator": "calculate",
    "checker": "check",
    "converter": "convert",
    "detector": "detect",
    "evaluator": "evaluate",
    "fetcher": "fetch",
    "finder": "find",
    "lookup": "find",
    "parser": "parse",
    "reader": "read",
    "searcher": "search",
    "solver": "solve",
    "validator": "validate",
}
"""What a tool does that is called after who does it."""
MATHS: Final = _set(
    "algebra algebraic angle arithmetic calculus cosh cosine cube cubic decimal determinant deviation "
    "difference eigenvalue eigenvector exponential factorial fibonacci fraction gcd geometry geometric "
    "hyperbolic integral interest lcm logarithm math mathematic median modulo numpy percent percentage "
    "polynomial prime probability quadratic quantile ratio regression rounding sinh sine sqrt svd sympy "
    "tangent tanh trigonometric trigonometry variance"
)
"""Things that are computed: a tool called after one computes it, unless something says otherwise."""
TRANSFORMS: Final = _set("convert decode encode format reverse sort split transform translate transpose trim")

FILES: Final = _set("dir directory document file filename filepath folder path paths workbook")
PLACES: Final = FILES | _set(
    "address bucket cell database db host paragraph port presentation project repo repository server "
    "shape sheet slide table uri url worksheet"
)
STATE: Final = _set(
    "account conn connection context cursor handle history instance job key memory notebook ref session "
    "kb knowledge slot state store task token user workspace"
)
KEPT: Final = _set("history inplace session stored")
"""Of something that is kept, in a name or a parameter."""
ARCHIVES: Final = _set("archive compressed tar zip")
TEXTS: Final = _set("content csv data html input json markdown message source str string text xml")
"""Parameters that hold themselves what is worked on."""
SINKS: Final = _set("destination dest dry dst force overwrite prune save saved")
SQL: Final = _set("sql script statement stmt")
FLEETING: Final = _set(
    "bootstrap carlo clock currency current dice exchange latest live now random realtime seed shuffle "
    "stochastic timestamp today tomorrow uuid zone"
)
OUTSIDE: Final = _set(
    "api browser database download fetch filesystem http https internet network online server web website"
)

_NOT: Final = r"(?<!not )(?<!n't )(?<!never )(?<!without )"
SAYS_WRITES: Final = re.compile(
    rf"\b{_NOT}(?:appends|creates|deletes|executes|inserts|installs|launches|modifies|mutates|"
    r"overwrites|persists|publishes|removes|renames|replaces|saves|sends|spawns|submits|writes|"
    r"save[ds]? (?:to|in|as|under)|stored? (?:in|to)|writ(?:e|ten|ing) (?:to|into)|side[ -]effects?|"
    r"downloads|permanently)\b"
    r"|(?:^|[.;:]\s+|\b(?:also|and|it|or|that|then|tool|which)\s+)"
    r"(?:commits|deploys|drops|posts|records|registers|resets|schedules|stores|updates|uploads)\b",
    re.IGNORECASE,
)
SAYS_READS: Final = re.compile(
    r"\bread[- ]?only\b|\bselect[- ]only\b|\bonly (?:select|read)\b|\bselect (?:queries|statements) only\b"
    r"|\bexecute a select query\b",
    re.IGNORECASE,
)
SAYS_KEPT: Final = re.compile(
    r"\b(?:stored|in-?place|(?:calculation|command) history)\b"
    r"|\b(?:a|an|the|this|current|solver|your) session\b|\bsession (?:id|state|variable)",
    re.IGNORECASE,
)
ASKS: Final = re.compile(
    r"\s*(?:checks?|determines?|returns?|tells?) (?:if|whether)\b(?!.*\b(?:and|then|otherwise)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""A description that is a question, and nothing else."""
CODE: Final = _set("code cmd command script shell")
