"""The verdict on a run, from its faults, the caller's checks and the workflow's own `expect`.

Authority: the caller's assertions and schema, then postconditions. A check that cannot be decided
is never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from catalog.canonical import JsonValue
from catalog.errors import SchemaRejected
from catalog.schema import problems
from catalog.tools import JsonSchema
from server.execution.expectations import Reached, check_expectation
from server.execution.run import Run
from skills_store.trace import Status, Verification
from skills_store.workflow.assertions import check_assertion
from skills_store.workflow.faults import CheckFailed, Denied, Fault
from skills_store.workflow.model import Workflow

__all__ = ["Checks", "Verdict", "verify"]


@dataclass(frozen=True, slots=True)
class Checks:
    """What the caller demands of the outputs."""

    assertions: tuple[str, ...] = ()
    """jmespath over `output`, `inputs` and `nodes`; all must hold."""
    schema: JsonSchema | None = None
    """Of the outputs as an object."""

    def __bool__(self) -> bool:
        return bool(self.assertions) or self.schema is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run is worth, every fault against it, and who said what."""

    status: Status
    faults: tuple[Fault, ...]
    """Those of the run first, then those of the checks."""
    verifications: tuple[Verification, ...] = ()

    @property
    def is_verified(self) -> bool:
        """Whether somebody's check said that the run was right."""
        return self.status == "verified"


def verify(run: Run, workflow: Workflow, inputs: Mapping[str, JsonValue], checks: Checks) -> Verdict:
    """Return the verdict on a run.

    Args:
        run: what came of the workflow.
        workflow: that ran.
        inputs: it ran with.
        checks: the caller's; empty: only the workflow's `expect` can verify.
    """
    if run.result is None:
        return Verdict(_status_of_faults(run.faults, checks), run.faults)
    reached = Reached(cast("JsonValue", run.result), inputs, run.outputs)
    judged = [
        *_assertions(checks, reached),
        *_schema(checks, run.result),
        *_postconditions(workflow, reached),
    ]
    verifications = tuple(verification for verification, _ in judged)
    faults = (*run.faults, *(fault for _, found in judged for fault in found))
    if run.faults:
        return Verdict(_status_of_faults(faults, checks), faults, verifications)
    if faults:
        return Verdict("failed", faults, verifications)
    return Verdict("verified" if verifications else "succeeded", (), verifications)


def _status_of_faults(faults: tuple[Fault, ...], checks: Checks) -> Status:
    """Return the status of a run that has faults of its own, or no outputs."""
    if any(isinstance(fault, Denied) and fault.needs_approval for fault in faults):
        return "needs_approval"
    only_world = bool(faults) and all(fault.evidence == "world" for fault in faults)
    return "unverified" if only_world and checks else "failed"


_Judged = tuple[Verification, list[Fault]]


def _assertions(checks: Checks, reached: Reached) -> Iterator[_Judged]:
    for expression in checks.assertions:
        checked = check_assertion(
            expression, output=reached.output, inputs=reached.inputs, nodes=reached.nodes
        )
        said = Verification(by="assertion", passed=checked.passed, detail=checked.message)
        failed = CheckFailed(message=checked.message, found=checked.found)
        yield said, [] if checked.passed else [failed]


def _schema(checks: Checks, result: dict[str, JsonValue]) -> Iterator[_Judged]:
    if checks.schema is None:
        return
    faults: list[Fault] = []
    try:
        for problem in problems(checks.schema, cast("JsonValue", result)):
            message = f"{problem.pointer or '/'}: {problem.message}"
            pointer = "/outputs" + problem.pointer
            faults.append(CheckFailed(message=message, pointer=pointer, found=problem.found))
    except SchemaRejected as error:
        faults.append(CheckFailed(message=f"the schema cannot be evaluated: {error}"))
    detail = "; ".join(fault.message for fault in faults) or "the outputs fit the schema"
    yield Verification(by="schema", passed=not faults, detail=detail), faults


def _postconditions(workflow: Workflow, reached: Reached) -> Iterator[_Judged]:
    for position, expression in enumerate(workflow.expect):
        fault = check_expectation(expression, reached, f"/expect/{position}")
        detail = fault.message if fault is not None else f"{expression}: holds"
        said = Verification(by="postcondition", passed=fault is None, detail=detail)
        yield said, [] if fault is None else [fault]
