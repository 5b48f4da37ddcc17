"""Teaching the bank an explored task: skills by the normal admission, and lessons, of its own runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from server.bank.admission.learning import learn
from server.bank.context import Context
from server.bank.keeping import keep_lesson
from server.compilation.compile import VerifiedRun
from server.curation.replaying import Replayer
from server.execution.run import Run
from server.exploration.explore import Solved
from server.exploration.report import ExploredSkill, Taught
from server.exploration.scope import ExplorationScope
from server.exploration.tasks import ExploredTask, HeldOutInstance
from server.navigating.writing import Lesson
from skills_store.experience.unit import ExperienceUnit
from skills_store.trace import Verification

__all__ = ["learn_lessons", "learn_skill_of", "scoped_replayer", "teach_task"]


@dataclass(frozen=True, slots=True)
class _Instance:
    """A task with one set of values, and the run that solved it."""

    said: HeldOutInstance
    run: Run


def scoped_replayer(scope: ExplorationScope, context: Context) -> Replayer:
    """Return what runs references in fresh processes; only tools that may repeat are in them."""
    return Replayer(
        servers=context.connections,
        effects=context.effects,
        snapshot=context.known(),
        options=context.options(),
        fresh=frozenset({scope.server}) if scope.is_stateless else frozenset(),
        labels=context.config.labels,
    )


async def teach_task(
    task: ExploredTask, scope: ExplorationScope, context: Context, reserved: int = 0
) -> Taught:
    """Run the reference of a task on its instances, and learn from the runs what an exploration would.

    A run that fails ends it: what its server does has changed, and is not learned.

    Args:
        task: with a check that assertions tell.
        scope: its server's, within which its reference runs.
        context: the bank.
        reserved: instances that learning never sees, the last ones.
    """
    runner, runs, calls = scoped_replayer(scope, context), list[Run](), 0
    for said in task.instances[: max(1, len(task.instances) - reserved)]:
        run = await runner.run_workflow(task.reference, said.inputs)
        calls += len(task.reference.nodes)
        if run.faults or run.result is None:
            why = run.faults[0].message if run.faults else "it gives no outputs"
            return Taught(task=task.id, calls=calls, reason=f"its reference fails now: {why}")
        runs.append(run)
    solved = Solved(task, tuple(runs))
    skill = await learn_skill_of(solved, context, 0)
    lessons = await learn_lessons(solved, context)
    return Taught(task=task.id, calls=calls, skill=skill, lessons=len(lessons))


async def learn_skill_of(solved: Solved, context: Context, reserved: int) -> ExploredSkill | None:
    """Return the skill that the runs of a task make, where they make one: each run is one proof."""
    task = solved.task
    if task.check != "assertions":
        return None
    skill, reason = None, ""
    for one in _instances(task, solved.runs, reserved):
        learned = await learn(_verified(task, one), context, name=None)
        skill, reason = learned.skill or skill, learned.reason
    if skill is None:
        return None
    return ExploredSkill(name=skill.name, state=skill.state, reason=reason, task=task.id)


def _instances(task: ExploredTask, runs: Sequence[Run], reserved: int) -> list[_Instance]:
    shown = task.instances[: max(1, len(task.instances) - reserved)]
    return [_Instance(said, run) for said, run in zip(shown, runs, strict=False)]


def _verified(task: ExploredTask, one: _Instance) -> VerifiedRun:
    result = dict(one.run.result or {})
    outputs = {name: value for name, value in result.items() if name in task.reference.outputs}
    said = tuple(Verification(by="assertion", passed=True, detail=text) for text in one.said.assertions)
    marks = {"task": one.said.task, "status": "verified", "verifications": said, "outputs": outputs}
    return VerifiedRun(
        workflow=task.reference,
        trace=one.run.trace.model_copy(update=marks),
        outputs=outputs,
        node_outputs=one.run.outputs,
        task=one.said.task,
        inputs=dict(one.said.inputs),
        verifications=said,
    )


async def learn_lessons(solved: Solved, context: Context, reserved: int = 0) -> list[ExperienceUnit]:
    """Keep the task's proving runs and what they teach; a task that only a judge can tell teaches nothing.

    Args:
        solved: the task with its runs.
        context: the bank.
        reserved: instances that learning never sees, the last ones.
    """
    learned: dict[str, ExperienceUnit] = {}
    for one in _instances(solved.task, solved.runs, reserved) if solved.task.check == "assertions" else ():
        verified = _verified(solved.task, one)
        document = {"workflow": context.redact(solved.task.workflow), "faults": ()}
        trace = verified.trace.model_copy(update=document)
        context.store.add_trace(trace)
        lesson = Lesson(one.said.task, trace)
        learned |= {unit.id: unit for unit in await keep_lesson(lesson, context)}
    return list(learned.values())
