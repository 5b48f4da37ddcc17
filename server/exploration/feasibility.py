"""Whether a draft is a task: its reference runs twice in fresh processes and gives the same answers.

Paper: AgentEvolver (feasibility filter; facts §4.2). Differs: no model judges a trajectory; the
reference is executed, volatile places are left out of the check, and at least one other instance
has to answer otherwise, since a check that always holds says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import JsonValue

from catalog.result import CallFailure, FailureKind
from catalog.tools import ToolId
from server.curation.differences import differences, is_moment
from server.curation.replaying import Replayer
from server.execution.run import Run
from server.exploration.distilling import Draft
from server.exploration.outputs import value_assertions
from server.exploration.session import ExplorationSession
from server.exploration.tasks import ExploredTask, HeldOutInstance
from server.exploration.wording import word_task
from skills_store.workflow.check import check_workflow
from skills_store.workflow.faults import DisguisedError, ToolError
from skills_store.workflow.model import Workflow, json_pointer

__all__ = ["Checked", "Feasibility", "Flake", "runs_by_chance"]

_HELD_OUT = 2
_TRIES = 6
"""Other values that are tried for held-out instances."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A draft after it was run. `task` is None where it was dropped; `reason` says why."""

    task: ExploredTask | None
    reason: str = ""
    runs: tuple[Run, ...] = ()
    """The equal runs of the reference, on the task's own inputs and then on each held-out one."""


@dataclass(frozen=True, slots=True)
class Flake:
    """A call of a check that failed by its server: by chance, without an answer, or with its process."""

    rule: Literal["flaky", "hang", "crash"]
    """`flaky`: the same was run again in another fresh process, and did not fail."""
    tool: ToolId
    arguments: dict[str, JsonValue]
    message: str


def runs_by_chance(run: Run) -> bool:
    """Return whether a run failed by what a tool said, which another fresh process may not say."""
    return any(isinstance(fault, ToolError | DisguisedError) for fault in run.faults)


@dataclass(frozen=True)
class Feasibility:
    """Runs drafts in fresh processes, within the budget of an exploration."""

    replayer: Replayer
    session: ExplorationSession
    flakes: list[Flake] = field(default_factory=list[Flake])
    """Calls of references that failed by their server, in order."""

    async def check(self, draft: Draft, name: str) -> Checked:
        """Return the task of a draft, or why there is none.

        Raises:
            BudgetSpent: the budget has no more calls for it.
        """
        faults = check_workflow(draft.workflow, self.replayer.snapshot)
        if faults:
            return Checked(None, f"not well-formed: {faults[0].message}")
        pair = await self._twice(draft.workflow, draft.inputs)
        if isinstance(pair, str):
            return Checked(None, pair)
        first, volatile = pair
        workflow = _without(draft.workflow, volatile)
        if not workflow.outputs:
            return Checked(_judged(draft, first, name), "its answers differ between equal runs", (first,))
        answer = {name: value for name, value in (first.result or {}).items() if name in workflow.outputs}
        held, runs, discriminates = await self._held_out(draft, workflow, answer)
        if draft.inputs and not discriminates:
            return Checked(None, "every other instance gives the same answer, so the check says nothing")
        task = ExploredTask(
            id=name,
            task=word_task(_having(draft, workflow), draft.inputs),
            servers=(draft.chain.last.probe.tool.id.server,),
            inputs=draft.inputs,
            workflow=workflow.to_json(),
            assertions=value_assertions(answer),
            answer=answer,
            volatile=tuple(sorted(volatile)),
            held_out=tuple(held),
            difficulty=draft.difficulty,
            solvers=draft.chain.tools,
        )
        return Checked(task, runs=(first, *runs))

    async def _twice(self, workflow: Workflow, inputs: Mapping[str, JsonValue]) -> tuple[Run, set[str]] | str:
        """Return the run and the outputs that are volatile, or why the reference is not feasible."""
        runs: list[Run] = []
        failed: Run | None = None
        while len(runs) < 2:
            self.session.take(len(workflow.nodes))
            run = await self.replayer.run_workflow(workflow, inputs)
            if not run.faults and run.result is not None:
                runs.append(run)
            elif failed is None and runs_by_chance(run):
                failed = run
            else:
                message = run.faults[0].message if run.faults else "no outputs"
                return f"its reference fails in a fresh process: {message}"
        if failed is not None:
            self.flakes.append(_flake(failed))
        one, two = (dict(run.result or {}) for run in runs)
        places = differences(one, two)
        moments = {json_pointer(name) for name, value in one.items() if is_moment(value)}
        return runs[0], {*(place for place in places if place), *moments}

    def note(self, tool: ToolId, arguments: Mapping[str, JsonValue], failure: CallFailure) -> None:
        """Keep a call that its server gave no answer to, also one that was made again and then went well."""
        rule = "hang" if failure.kind is FailureKind.TIMEOUT else "crash"
        self.flakes.append(Flake(rule, tool, dict(arguments), failure.message))

    async def _held_out(
        self, draft: Draft, workflow: Workflow, answer: Mapping[str, JsonValue]
    ) -> tuple[list[HeldOutInstance], list[Run], bool]:
        """Return other instances with their runs, and whether one of them answers otherwise.

        They share a process, which costs more to start than their calls; where the task itself then answers
        otherwise than in a fresh one, the process remembers, and each instance gets its own.
        """
        async with self.replayer.sharing() as shared:
            found = await self._instances(shared, draft, workflow, answer)
            self.session.take(len(workflow.nodes))
            again = await shared.run_workflow(workflow, draft.inputs)
            if not again.faults and dict(again.result or {}) == answer:
                return found
        return await self._instances(self.replayer, draft, workflow, answer)

    async def _instances(
        self, replayer: Replayer, draft: Draft, workflow: Workflow, answer: Mapping[str, JsonValue]
    ) -> tuple[list[HeldOutInstance], list[Run], bool]:
        found: list[HeldOutInstance] = []
        runs: list[Run] = []
        discriminates = False
        for inputs in self._other_inputs(draft):
            if len(found) >= _HELD_OUT or self.session.left < len(workflow.nodes):
                break
            self.session.take(len(workflow.nodes))
            run = await replayer.run_workflow(workflow, inputs)
            if run.faults or run.result is None:
                continue
            result = dict(run.result)
            if result == answer and (discriminates or len(found) + 1 >= _HELD_OUT):
                continue
            discriminates |= result != answer
            text = word_task(_having(draft, workflow), inputs)
            found.append(HeldOutInstance(task=text, inputs=inputs, assertions=value_assertions(result)))
            runs.append(run)
        return found, runs, discriminates

    def _other_inputs(self, draft: Draft) -> list[dict[str, JsonValue]]:
        """Return other values for a draft's inputs: all at once as far as there are some, then each alone.

        Values that are fine by themselves need not go together, such as those of an operation and its data.
        """
        tools = {step.probe.tool.id.tool: step.probe.tool for step in draft.chain.steps}
        options: dict[str, list[JsonValue]] = {}
        for name, value in draft.inputs.items():
            tool, argument = draft.slots[name]
            known = self.session.known.candidates(tools[tool], argument)
            options[name] = [v for v in [*known, *_near(value)] if v != value and type(v) is type(value)]
        together = [_different(draft.inputs, options, turn) for turn in range(_TRIES)]
        alone = [{**draft.inputs, name: chosen[name]} for chosen in together for name in draft.inputs]
        instances: list[dict[str, JsonValue]] = []
        for instance in [*together[:1], *alone]:
            if instance != draft.inputs and instance not in instances:
                instances.append(instance)
        return instances[:_TRIES]


def _flake(run: Run) -> Flake:
    fault = next(fault for fault in run.faults if isinstance(fault, ToolError | DisguisedError))
    step = next((step for step in run.trace.steps if step.node == fault.node), None)
    return Flake("flaky", fault.tool, dict(step.arguments) if step is not None else {}, fault.message)


def _different(
    inputs: Mapping[str, JsonValue], options: Mapping[str, list[JsonValue]], turn: int
) -> dict[str, JsonValue]:
    """Return other values of one turn: where there are some, two inputs do not get the same one."""
    chosen: dict[str, JsonValue] = {}
    for name, value in inputs.items():
        others = options[name]
        ranked = [others[(turn + step) % len(others)] for step in range(len(others))]
        chosen[name] = next((o for o in ranked if o not in chosen.values()), ranked[0] if ranked else value)
    return chosen


def _near(value: JsonValue) -> list[JsonValue]:
    """Return values like a number, which need no knowledge of the tool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return [value + 1, value * 2 + 3] if isinstance(value, int) else [value + 1.5, value * 2.25]


def _without(workflow: Workflow, volatile: set[str]) -> Workflow:
    """Return the workflow without the outputs that differ between equal runs."""
    kept = {
        name: value
        for name, value in workflow.outputs.items()
        if not any(
            place == json_pointer(name) or place.startswith(f"{json_pointer(name)}/") for place in volatile
        )
    }
    return workflow.model_copy(update={"outputs": kept})


def _having(draft: Draft, workflow: Workflow) -> Draft:
    return replace(draft, workflow=workflow)


def _judged(draft: Draft, run: Run, name: str) -> ExploredTask:
    """Return the task that only a judge with the reference answer can tell."""
    return ExploredTask(
        id=name,
        task=word_task(draft, draft.inputs),
        servers=(draft.chain.last.probe.tool.id.server,),
        inputs=draft.inputs,
        workflow=draft.workflow.to_json(),
        check="judge",
        answer=dict(run.result or {}),
        difficulty=draft.difficulty,
        solvers=draft.chain.tools,
    )
