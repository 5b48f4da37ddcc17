"""The parts of the documents that come from the program: rendered here, and kept between two marks.

`python tests/docs/generated.py` writes them into `docs/`; a test fails while they differ.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast, get_args

import click
from mcp.types import Tool
from pydantic import BaseModel

from catalog.effects import Activity, Effect, Reset, Verdict, decide
from server.bench.catalog_report import CatalogBenchReport
from server.bench.compile_report import CompileBenchReport
from server.bench.evolution_report import EvolutionReport
from server.bench.explore_report import ExploreBenchReport
from server.bench.planning_report import PlanningBenchReport
from server.bench.repair_report import RepairBenchReport
from server.bench.search_report import SearchBenchReport
from server.bench.stream_report import StreamBenchReport
from server.cli.answers import (
    AddedServer,
    InitReport,
    InputsReport,
    InstallReport,
    LoginReport,
    LogoutReport,
    ResetCheckReport,
)
from server.cli.app import app
from server.cli.envs import EnvironmentsReport
from server.cli.model_answers import FetchedModel, ListedModels, ServingModel
from server.demo.report import DemoReport
from server.evolving.report import EvolveReport
from server.execution.options import MAX_FOR_EACH, MAX_SKILL_DEPTH
from server.exploration.health.rules import RULES
from server.exploration.report import ExplorationReport
from server.models.known import KNOWN_MODELS
from server.reports import (
    ApprovalsReport,
    CheckReport,
    DeletedReport,
    DoctorReport,
    EffectsReport,
    ErrorReport,
    ExportReport,
    ForgottenReport,
    ImportReport,
    LabelsReport,
    RecordingReport,
    RecordingsReport,
    RepairReport,
    ReviewReport,
    RunReport,
    SavedReport,
    ShownSkill,
    SkillReport,
    SkillsReport,
    TestReport,
    exit_code,
)
from server.reports.audit import AuditReport
from server.reports.experience import DroppedReport, ExperienceReport, UnitReport
from server.requests import Budget
from server.surface.builtin_tools import BUILTIN_TOOLS
from server.training.export import TrainingReport
from server.training.launching import TrainReport
from skills_store.lifecycle import STATES, TRANSITIONS
from skills_store.trace import Status
from skills_store.workflow.edits import EditParameter, InsertNode, RemoveNode, Reorder, SwapTool
from skills_store.workflow.faults import Fault, TimeoutFault, ToolError
from skills_store.workflow.functions import BoundedFunctions
from skills_store.workflow.limits import Limits

__all__ = ["ANSWERS", "DOCUMENTS", "PACKAGES", "PROJECT", "REGIONS", "commands", "replaced"]

PROJECT = Path(__file__).parents[2]
DOCUMENTS = PROJECT / "docs"
PACKAGES = ("catalog", "skills_store", "server")

ANSWERS: dict[str, type[BaseModel]] = {
    "bench repair": RepairBenchReport,
    "bench catalog": CatalogBenchReport,
    "bench compile": CompileBenchReport,
    "bench evolution": EvolutionReport,
    "bench explore": ExploreBenchReport,
    "bench planning": PlanningBenchReport,
    "bench search": SearchBenchReport,
    "bench stream": StreamBenchReport,
    "demo": DemoReport,
    "init": InitReport,
    "install": InstallReport,
    "add": AddedServer,
    "doctor": DoctorReport,
    "model list": ListedModels,
    "model fetch": FetchedModel,
    "model serve": ServingModel,
    "effects approvals": ApprovalsReport,
    "effects approve": ApprovalsReport,
    "effects revoke": ApprovalsReport,
    "effects labels": LabelsReport,
    "effects list": EffectsReport,
    "effects set": EffectsReport,
    "effects verify": ResetCheckReport,
    "login": LoginReport,
    "logout": LogoutReport,
    "inputs list": InputsReport,
    "inputs set": InputsReport,
    "inputs forget": InputsReport,
    "check": CheckReport,
    "run": RunReport,
    "repair": RepairReport,
    "solve": RepairReport,
    "skills list": SkillsReport,
    "skills show": ShownSkill,
    "skills run": RunReport,
    "skills test": TestReport,
    "skills approve": SkillReport,
    "skills reject": SkillReport,
    "skills rollback": SkillReport,
    "skills pin": SkillReport,
    "skills unpin": SkillReport,
    "skills delete": DeletedReport,
    "skills retire": SkillReport,
    "skills restore": SkillReport,
    "audit": AuditReport,
    "export training": TrainingReport,
    "train": TrainReport,
    "experience drop": DroppedReport,
    "experience list": ExperienceReport,
    "experience show": UnitReport,
    "envs list": EnvironmentsReport,
    "evolve": EvolveReport,
    "explore": ExplorationReport,
    "skills save": SavedReport,
    "skills add-code": SavedReport,
    "export": ExportReport,
    "import": ImportReport,
    "review": ReviewReport,
    "record list": RecordingsReport,
    "record show": RecordingReport,
    "record prune": ForgottenReport,
}


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _first_sentence(text: str | None) -> str:
    words = " ".join((text or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", words)[0]


# Command line


def commands(group: click.Group = app, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is no group, by its words after `skillbank`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*prefix, name))
        elif command is not None:
            yield " ".join((*prefix, name)), command


def _command_line() -> str:
    parts: list[str] = []
    for name, command in commands():
        context = click.Context(
            command, info_name=f"skillbank {name}", terminal_width=100, help_option_names=["-h", "--help"]
        )
        parts.append(f"### skillbank {name}\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts)


def _exit_codes() -> str:
    tool = cast("Any", "server/tool")
    work = (ToolError(message="no", tool=_tool_id(tool)),)
    world = (TimeoutFault(message="no answer", tool=_tool_id(tool)),)
    rows = [(f"`{status}`", str(exit_code(status, work))) for status in get_args(Status)]
    rows.append(("`failed` or `unverified`, and all faults are the world's", str(exit_code("failed", world))))
    return _table(("status", "exit code"), rows)


def _tool_id(text: str) -> Any:
    from catalog.tools import ToolId

    return ToolId(*text.split("/"))


def _json_keys() -> str:
    rows = [(f"`{name}`", _keys(model)) for name, model in sorted(ANSWERS.items())]
    rows.append(("any, when it could not be carried out", _keys(ErrorReport)))
    return _table(("command", "keys of `--json`"), rows)


def _keys(model: type[BaseModel]) -> str:
    return ", ".join(f"`{name}`" for name in model.model_fields)


# Tools over MCP


def _health() -> str:
    rows = [(f"`{rule.id}`", rule.severity, rule.says, rule.remedy) for rule in RULES.values()]
    return _table(("rule", "severity", "what is wrong", "what its author can do"), rows)


def _tools() -> str:
    return "\n\n".join(_tool(tool) for tool in BUILTIN_TOOLS.values())


def _tool(tool: Tool) -> str:
    schema = tool.input_schema
    required = schema.get("required", [])
    rows = [
        (f"`{name}`" + ("" if name in required else ", optional"), _meaning(name, part))
        for name, part in schema.get("properties", {}).items()
    ]
    hints = tool.annotations
    kind = "reads" if hints and hints.read_only_hint else "may act"
    about = _first_sentence(tool.description)
    return f"### {tool.name}\n\n{about} ({kind})\n\n" + _table(("argument", "meaning"), rows)


def _meaning(name: str, part: dict[str, Any]) -> str:
    said = _first_sentence(part.get("description"))
    if name != "options":
        return said
    return f"{said} Has {', '.join(f'`{one}`' for one in part['properties'])}."


# Workflows


def _functions() -> str:
    table = cast("dict[str, dict[str, Any]]", BoundedFunctions.FUNCTION_TABLE)
    own = {name for name, function in table.items() if _is_ours(function["function"])}
    ours = [_signature(name, table[name]) for name in sorted(own)]
    stock = [_signature(name, table[name]) for name in sorted(set(table) - own)]
    return f"Ours:\n\n{_bullets(ours)}\n\nOf jmespath itself:\n\n{_bullets(stock)}"


def _is_ours(function: Callable[..., object]) -> bool:
    return function.__module__ == BoundedFunctions.__module__


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- `{line}`" for line in lines)


def _signature(name: str, entry: dict[str, Any]) -> str:
    given = [p for p in inspect.signature(entry["function"]).parameters if p != "self"]
    parts: list[str] = []
    for position, declared in enumerate(entry["signature"]):
        kinds = " or ".join(declared["types"]) or "any"
        label = given[position] if position < len(given) and _is_ours(entry["function"]) else ""
        parts.append((f"{label}: " if label else "") + kinds + ("…" if declared.get("variadic") else ""))
    return f"{name}({', '.join(parts)})"


def _faults() -> str:
    models = cast("tuple[type[Any], ...]", get_args(get_args(Fault)[0]))
    rows = [
        (f"`{model.model_fields['kind'].default}`", _first_sentence(model.__doc__), model.evidence)
        for model in models
    ]
    return _table(("kind", "meaning", "evidence about the"), rows)


def _limits() -> str:
    limits = Limits()
    rows = [
        ("nodes", str(limits.max_nodes)),
        ("containers inside containers", str(limits.max_depth)),
        ("items of a mapped node", str(MAX_FOR_EACH)),
        ("bytes of the document", f"{limits.max_bytes:,}"),
        ("skills inside each other", str(MAX_SKILL_DEPTH)),
    ]
    return _table(("what", "at most"), rows)


# Effects, repair, skills

_ACTIVITIES = {
    Activity.CLIENT_CALL: "a client calls a tool or an active skill",
    Activity.FIRST_RUN: "first run of a plan by `run`, `repair`, `solve`",
    Activity.RERUN: "later candidates of a repair",
    Activity.REPLAY: "replay for admission, `skills test`",
    Activity.RETRY: "again after a world fault",
}
_VERDICTS = {
    Verdict.RUN: "runs",
    Verdict.ISOLATE: "runs in a process of its own",
    Verdict.ASK: "asks, else needs approval",
    Verdict.REFUSE: "never",
}


def _policy() -> str:
    rows = [
        (
            _ACTIVITIES[activity],
            _decision(Effect.PURE, Reset.NONE, activity),
            _decision(Effect.READ, Reset.PROCESS, activity),
            _decision(Effect.WRITE, Reset.NONE, activity),
        )
        for activity in Activity
    ]
    head = (
        "activity",
        "`pure`, `read`",
        "all but `pure` on a resettable server",
        "`write`, `unknown` elsewhere",
    )
    return _table(head, rows)


def _decision(effect: Effect, reset: Reset, activity: Activity) -> str:
    decision = decide(effect, reset, activity)
    return _VERDICTS[decision.verdict] + (", remembered" if decision.memoise else "")


def _edits() -> str:
    models = (SwapTool, EditParameter, InsertNode, RemoveNode, Reorder)
    rows = [(f"`{m.model_fields['kind'].default}`", _first_sentence(m.__doc__)) for m in models]
    return _table(("edit", "what it does"), rows)


def _budgets() -> str:
    budget = Budget()
    rows = [
        ("`--budget-seconds`", f"{budget.seconds:g} s"),
        ("`--budget-calls`", f"{budget.calls} calls to tool servers; answers from memory are free"),
        ("(no option)", f"{budget.candidates} candidates"),
    ]
    return _table(("option", "default"), rows)


def _states() -> str:
    rows = [
        (f"`{before}`", ", ".join(f"`{after}`{_by(before, after)}" for after in _following(before)))
        for before in STATES
        if _following(before)
    ]
    return _table(("from", "to"), rows)


def _following(before: str) -> list[str]:
    return [state for state in STATES if any((b, a) == (before, state) for b, a, _ in TRANSITIONS)]


def _by(before: str, after: str) -> str:
    actors = {actor for b, a, actor in TRANSITIONS if (b, a) == (before, after)}
    return f" (by a {actors.pop()})" if len(actors) == 1 and "person" in actors else ""


# Local models


def _local_models() -> str:
    rows = [
        (
            f"`{model.name}`",
            ", ".join(f"`{alias}`" for alias in model.aliases),
            f"{model.parameters}, {model.quantisation}",
            f"{model.size_bytes / 10**6:,.0f} MB",
            model.licence,
            model.good_for,
            f"<{model.source}>",
        )
        for model in KNOWN_MODELS
    ]
    return _table(("model", "also", "size", "file", "licence", "good for", "source"), rows)


# Architecture, fidelity


def _modules() -> str:
    parts: list[str] = []
    for package in PACKAGES:
        rows = [
            (f"`{_module_name(path)}`", _first_sentence(_docstring(path)))
            for path in _sources(package)
            if path.name != "__init__.py"
        ]
        parts.append(f"### {package}\n\n" + _table(("module", "owns"), rows))
    return "\n\n".join(parts)


def _sources(package: str) -> list[Path]:
    return sorted(p for p in (PROJECT / package).rglob("*.py") if "__pycache__" not in p.parts)


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts)


def _docstring(path: Path) -> str | None:
    return ast.get_docstring(ast.parse(path.read_text("utf-8")))


def _fidelity() -> str:
    rows = [row for package in PACKAGES for path in _sources(package) for row in _claims(path)]
    return _table(("where", "what the paper does", "what we do differently"), rows)


def _claims(path: Path) -> Iterator[tuple[str, str, str]]:
    tree = ast.parse(path.read_text("utf-8"))
    module = _module_name(path)
    for node in ast.walk(tree):
        for place, text in _texts(node):
            if "Paper:" in text:
                name = f"{module}.{place}" if place else module
                paper, differs = _claim(text)
                yield f"`{name}`", paper, differs or "–"


def _texts(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield getattr(node, "name", ""), ast.get_docstring(node) or ""
        for before, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(before, ast.Assign | ast.AnnAssign) and _is_text(after):
                target = before.targets[0] if isinstance(before, ast.Assign) else before.target
                yield ast.unparse(target), cast("Any", after).value.value


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _claim(text: str) -> tuple[str, str]:
    """Return what a docstring says after `Paper:` and after `Differs:`, a sentence each."""
    after = text.partition("Paper:")[2]
    paper, _, differs = after.partition("Differs:")
    return _plain(paper), _plain(differs)


def _plain(text: str) -> str:
    words = re.sub(r"([;,] )?(DESIGN|facts) §[^);]*", "", " ".join(text.split()))
    sentence = _first_sentence(words.replace(" ()", ""))
    missing = sentence.count("(") - sentence.count(")")
    bare = sentence.removesuffix(".")
    return bare + ")" * missing if missing > 0 else bare[: len(bare) + missing]


REGIONS: dict[str, dict[str, Callable[[], str]]] = {
    "architecture.md": {"modules": _modules},
    "cli.md": {"exit-codes": _exit_codes, "json-keys": _json_keys, "commands": _command_line},
    "configuration.md": {"policy": _policy},
    "exploring.md": {"health": _health},
    "fidelity.md": {"fidelity": _fidelity},
    "mcp.md": {"tools": _tools},
    "models.md": {"local-models": _local_models},
    "repair.md": {"edits": _edits, "budgets": _budgets},
    "skills.md": {"states": _states},
    "workflows.md": {"functions": _functions, "faults": _faults, "limits": _limits},
}
"""By document, the name of each generated region and what renders it."""


def replaced(document: str, text: str) -> str:
    """Return a document's text with its generated regions as the program has them now.

    Raises:
        ValueError: the marks of a region are not there.
    """
    for name, render in REGIONS[document].items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- /generated: {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"docs/{document} has no region {name!r}")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{render()}\n\n{end}{rest.split(end)[1]}"
    return text


if __name__ == "__main__":
    for _document in REGIONS:
        _path = DOCUMENTS / _document
        _path.write_text(replaced(_document, _path.read_text("utf-8")), "utf-8")
