"""The environments there are: what each is called, how its worker starts, and which tasks it has."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from server.environments.errors import BadRequest
from server.environments.task import EnvironmentTask
from server.environments.tasks import read_task_file, tau_tasks
from server.environments.world import JsonObject
from server.progress import ProgressListener
from server.provisioning.fetched import (
    cache_folder,
    fetch_environment,
    fetch_servers,
)
from server.settings import Settings

__all__ = ["BUILT_IN", "Definition", "TaskList", "built_in", "is_fetched", "of_task_file"]

TaskList = Mapping[str, Mapping[str, JsonObject]]
"""Tasks by split and id, in order, each as its worker is given it."""

_FOREIGN = Path(__file__).parent / "foreign"
_TAU = {"tau-retail": "retail", "tau-airline": "airline"}
_BFCL = ("mpmath==1.3.0", "pydantic>=2.8", "tqdm", "requests", "python-dotenv", "numpy==1.26.4")
_BFCL_ALONE = ("bfcl-eval==2026.3.23",)
_TEXTWORLD = ("textworld==1.7.0",)

BUILT_IN: Mapping[str, str] = {
    "bfcl": "BFCL v3 multi-turn: stateful Python APIs, several turns, the package's own checker",
    "tau-retail": "τ²-bench retail: a shop's database, compared with that of the reference run",
    "tau-airline": "τ²-bench airline: bookings, compared likewise",
    "textworld": "TextWorld: quests in text games made from the seed, the game's own score",
}
"""What each is, by name; their packages are fetched when they are first served."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One environment."""

    name: str
    about: str
    command: tuple[str, ...]
    """Starts a worker."""
    tasks: TaskList | None = None
    """None: a worker is asked."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """That its workers inherit."""


def of_task_file(name: str, path: Path, settings: Settings) -> Definition:
    """Return the environment of the configured servers with the tasks of a file.

    Raises:
        BadRequest: a task names a server that is not configured.
        ProvisioningError: the file cannot be read as tasks.
        ExplorationError: likewise.
        ConfigError: the configuration cannot be used.
    """
    tasks = read_task_file(path)
    servers = settings.load_config().servers
    for task in tasks:
        if missing := [server for server in task.servers if server not in servers]:
            raise BadRequest(
                f"{path}: task {task.id!r} needs server {missing[0]!r}, which is not configured:"
                " skillbank add it"
            )
    module = ("-m", "server.environments.tool_world")
    return Definition(
        name,
        f"{len(tasks)} tasks of {path.name} over configured tool servers",
        (sys.executable, *module, str(settings.config_path), str(settings.store_path)),
        {"train": _by_id(tasks)},
        dict(settings.environment),
    )


def built_in(name: str, settings: Settings, listener: ProgressListener) -> Definition:
    """Return an environment of other packages; they are fetched where they are not there.

    Raises:
        BadRequest: there is none of this name.
        ProvisioningError: a package cannot be fetched.
    """
    if name not in BUILT_IN:
        raise BadRequest(f"no environment {name!r}; there are {', '.join(BUILT_IN)}, and --tasks NAME=FILE")
    inherited = dict(settings.environment)
    if (domain := _TAU.get(name)) is not None:
        fetch_servers([domain], cache_folder(), listener)
        command = (sys.executable, "-m", "server.environments.tau_world", domain)
        return Definition(name, BUILT_IN[name], command, {"test": _by_id(tau_tasks(domain))}, inherited)
    if name == "bfcl":
        python = fetch_environment("bfcl", _BFCL, listener, alone=_BFCL_ALONE)
        return Definition(name, BUILT_IN[name], _foreign(python, "bfcl_turns"), None, inherited)
    python = fetch_environment("textworld", _TEXTWORLD, listener)
    return Definition(name, BUILT_IN[name], _foreign(python, "text_games"), None, inherited)


def is_fetched(name: str) -> bool:
    """Return whether what a built-in environment needs is there already."""
    folder = cache_folder()
    if name in _TAU:
        return bool(list((folder / "older").glob(f"lib/*/site-packages/tau2_{_TAU[name]}_mcp")))
    return (folder / name / "requirements.txt").exists()


def _foreign(python: Path, module: str) -> tuple[str, ...]:
    return (str(python), str(_FOREIGN / "loop.py"), module)


def _by_id(tasks: Iterable[EnvironmentTask]) -> dict[str, JsonObject]:
    return {task.id: task.model_dump(mode="json") for task in tasks}
