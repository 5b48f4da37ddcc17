"""Code skills: a Python function and its tests become a skill that only a sandbox runs.

Paper: FlowEvo (code family: signature from the syntax tree, replay tests from verifier code, gate).
Differs: code is run out of process in an engine that confines it; engine and version belong to the
    skill; expected values stay in this process and never enter the sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.plain_text import plain_text
from catalog.schema import lint_schema, portable_schema
from catalog.tools import JsonSchema
from server.bank.admission.learning import check_name, learn_skill
from server.bank.context import Context
from server.bank.errors import NotSaved
from server.bank.using import skill_report
from server.compilation.prose import skill_name
from server.reports import SavedReport
from server.requests import SaveCodeRequest
from server.sandbox.engine import (
    CodeOutcome,
    CodeRequest,
    Engine,
    Raised,
    Returned,
    SandboxUnavailable,
    ToolRefused,
)
from skills_store.code.examples import CodeExample, parse_examples
from skills_store.code.lint import lint_code
from skills_store.code.reading import Function, read_function
from skills_store.errors import MalformedCode
from skills_store.hints import derived_hints
from skills_store.skill import Guidance, Pin, Provenance, ReplayTest, Signature, Skill
from skills_store.trace import Verification
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Code, Node, Workflow

__all__ = ["code_workflow", "lay_out", "save_code"]

_NODE = "run"
_RESULT = "result"
_LONGEST_DESCRIPTION = 300


@dataclass(frozen=True, slots=True)
class _Tried:
    """The engine that has what the code uses, and what its tests came to there."""

    engine: Engine
    outcomes: tuple[CodeOutcome, ...]


async def save_code(request: SaveCodeRequest, context: Context) -> SavedReport:
    """Judge a function by its tests and keep it as a skill.

    Raises:
        NotSaved: it cannot be read, is refused by the lint, or no engine here can run it; says why.
    """
    check_name(request.name)
    try:
        function = read_function(request.source, request.entry)
        examples = parse_examples(request.tests, function)
    except MalformedCode as error:
        raise NotSaved(str(error)) from error
    if problems := lint_code(request.source):
        raise NotSaved("; ".join(problems))
    await context.snapshot({tool.server for tool in request.tools.values()})
    tried = await _able_engine(request, function, examples, context)
    skill = _skill(request, function, examples, tried, context)
    learned = await learn_skill(skill, context)
    kept = skill_report(learned.skill, context) if learned.skill else None
    return SavedReport(skill=kept, reason=learned.reason, calls=0, verdict=learned.verdict)


async def _able_engine(
    request: SaveCodeRequest, function: Function, examples: Sequence[CodeExample], context: Context
) -> _Tried:
    """Return the first engine that lacks nothing the code uses."""
    if context.sandbox is None:
        raise NotSaved("nothing here runs code")
    lacking: list[str] = []
    tools = dict.fromkeys(request.tools, _not_now)
    for engine in context.sandbox.engines.values():
        asked = [CodeRequest(request.source, function.entry, e.inputs, tools) for e in examples]
        try:
            outcomes = tuple([await engine.run(one) for one in asked])
        except SandboxUnavailable as error:
            raise NotSaved(str(error)) from error
        missing = [o for o in outcomes if isinstance(o, Raised) and o.is_unsupported]
        if not missing:
            return _Tried(engine, outcomes)
        lacking.append(f"{engine.name}: {missing[0].kind}: {missing[0].message}")
    raise NotSaved(f"no engine can run it: {'; '.join(lacking)}")


async def _not_now(arguments: dict[str, JsonValue]) -> JsonValue:
    raise ToolRefused(f"no tool is called while an engine is chosen, with {len(arguments)} arguments or any")


def code_workflow(name: str, code: Code, description: str | None = None) -> Workflow:
    """Return the workflow that a function is: one node that passes every input on."""
    takes = code.takes.get("properties")
    names = list(takes) if isinstance(takes, dict) else []
    node = Node(id=_NODE, code=code, arguments={given: f"$inputs.{given}" for given in names})
    return Workflow(
        name=name,
        description=description or None,
        inputs=code.takes,
        nodes=(node,),
        outputs={_RESULT: f"$nodes.{_NODE}.output"},
    )


def lay_out(source: str, function: Function, engine: Engine) -> Code:
    """Return a function as a node takes it, for the engine as it is here."""
    return Code.model_validate(
        {
            "source": source,
            "entry": function.entry,
            "engine": engine.name,
            "engine_version": engine.version,
            "takes": portable_schema(function.takes),
            "gives": function.gives,
        }
    )


def _skill(
    request: SaveCodeRequest,
    function: Function,
    examples: Sequence[CodeExample],
    tried: _Tried,
    context: Context,
) -> Skill:
    code = lay_out(request.source, function, tried.engine)
    code = code.model_copy(update={"tools": dict(request.tools)})
    name = skill_name(request.name)
    said = plain_text(function.says, _LONGEST_DESCRIPTION)
    workflow = code_workflow(name, code, said)
    pins = _pins(code, context)
    tools = [tool for pin in pins if (tool := context.known().get(pin.tool)) is not None]
    return Skill(
        name=name,
        version=1,
        state="proposed",
        reason="written; waits for evidence",
        origin="user",
        title=name.replace("_", " ").capitalize(),
        description=f"{said.rstrip('.') or f'Computes {function.entry}'}. Runs in a sandbox.",
        workflow=workflow,
        content_hash=content_hash(workflow),
        shape_hash=shape_hash(workflow),
        signature=_signature(code),
        tests=tuple(_test(example, number) for number, example in enumerate(examples)),
        pins=pins,
        hints=derived_hints(tools, context.effects),
        guidance=Guidance(when_to_use=request.task or said),
        provenance=Provenance(
            task=request.task, explicit_save=True, verifications=(_verification(examples, tried, request),)
        ),
        tags=("code",),
        created_at=context.clock(),
    )


def _signature(code: Code) -> Signature:
    gives: JsonSchema = {
        "type": "object",
        "properties": {_RESULT: code.gives},
        "required": [_RESULT],
        "additionalProperties": False,
    }
    if wrong := lint_schema(portable_schema(gives)):
        raise NotSaved(f"what {code.entry} returns has no schema that strict hosts accept: {wrong[0]}")
    return Signature(input_schema=code.takes, output_schema=portable_schema(gives))


def _test(example: CodeExample, number: int) -> ReplayTest:
    return ReplayTest(
        name=f"held_out_{number}" if number else "original",
        inputs=example.inputs,
        outputs={_RESULT: example.expected},
        kind="held_out" if number else "original",
    )


def _pins(code: Code, context: Context) -> tuple[Pin, ...]:
    """Return the contracts of the granted tools.

    Raises:
        NotSaved: one of them is not known.
    """
    known, effects = context.known(), context.effects
    pins: list[Pin] = []
    for tool_id in sorted(set(code.tools.values())):
        tool = known.get(tool_id)
        if tool is None:
            raise NotSaved(f"no tool {tool_id} is known: `skillbank doctor` lists the servers")
        pins.append(Pin(tool=tool_id, contract_hash=tool.contract_hash, effect=effects.effect(tool_id)))
    return tuple(pins)


def _verification(examples: Sequence[CodeExample], tried: _Tried, request: SaveCodeRequest) -> Verification:
    """Return what the tests said; with tools in it that is left to the replays."""
    if request.tools:
        detail = f"{len(examples)} tests, to be replayed with its tools"
        return Verification(by="assertion", passed=True, detail=detail)
    right = [
        isinstance(outcome, Returned) and outcome.value == example.expected
        for outcome, example in zip(tried.outcomes, examples, strict=True)
    ]
    detail = f"{sum(right)} of {len(right)} tests"
    return Verification(by="assertion", passed=all(right), detail=detail)
