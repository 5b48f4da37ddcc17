"""The gates between a verified run and a trusted skill: from evidence to a verdict, purely.

Every gate looks at every candidate, so that a verdict lists all that is wrong and not the first
thing. Gathering evidence belongs to `server.curation`, moving states to `lifecycle`.
"""

from skills_store.admission.inputs import INPUTS_REACH
from skills_store.admission.running_gates import MINIMUM_VARIED_RUNS, ONE_READING
from skills_store.admission.verdict import MINIMUM_TRACES, is_refuted, judge_admission

__all__ = [
    "INPUTS_REACH",
    "MINIMUM_TRACES",
    "MINIMUM_VARIED_RUNS",
    "ONE_READING",
    "is_refuted",
    "judge_admission",
]
