"""A command line on a bank that answers what a test tells it, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from catalog.tools import Snapshot, Tool, ToolId
from server.cli import main
from server.cli.ports import Wiring
from server.execution.consent import GrantAll, NoConsent
from server.onboarding import Probed
from server.progress import Progress


@dataclass
class FakeBank:
    """Answers each use case with what `answers` holds for it: a report, or an error to raise."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    progress: tuple[Progress, ...] = ()
    open: bool = False
    kept_to: tuple[str, ...] = ()

    def keep_to(self, servers: Iterable[str]) -> None:
        self.kept_to = tuple(servers)

    async def can_judge(self) -> bool:
        return False

    def __getattr__(self, name: str):
        if name.startswith("_") or name not in self.answers:
            raise AttributeError(name)

        async def use(*arguments, **named):
            self.asked.append((name, *arguments, *named.items()))
            answer = self.answers[name]
            if isinstance(answer, BaseException):
                raise answer
            return await answer() if callable(answer) else answer

        return use


@dataclass(frozen=True)
class Ran:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class CommandLine:
    """Runs command lines against a bank, servers and a terminal that a test sets up."""

    folder: Path
    capture: Callable[[], Any]
    bank: FakeBank = field(default_factory=FakeBank)
    servers: dict[str, Probed] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    remembered: list[Snapshot] = field(default_factory=list)
    consents: list[Any] = field(default_factory=list)
    tried: list[Any] = field(default_factory=list)
    verdict: Any = None
    interactive: bool = False
    work: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "config.json"

    @property
    def document(self) -> Any:
        return json.loads(self.config.read_text())

    def file(self, name: str, content: object) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def __call__(self, *arguments: str) -> Ran:
        where = ["--config", str(self.config), "--store", str(self.folder / "store.db")]
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        return self.bare(*arguments[:cut], *where, *arguments[cut:])

    def bare(self, *arguments: str) -> Ran:
        code = main(arguments, self.wiring())
        captured = self.capture()
        return Ran(code, captured.out, captured.err)

    def wiring(self) -> Wiring:
        return Wiring(
            open_bank=self._open_bank,
            probe=self._probe,
            remember=self._remember,
            try_reset=self._try_reset,
            consent=lambda interactive: GrantAll() if interactive else NoConsent(),
            serve=self._worker("serve", None),
            run_demo=self._worker("demo", 0),
            run_bench=self._worker("bench", 0),
            is_interactive=lambda: self.interactive,
        )

    @asynccontextmanager
    async def _open_bank(self, settings, *, consent, progress):
        settings.load_config()
        self.consents.append(consent)
        self.bank.open = True
        try:
            for moment in self.bank.progress:
                progress(moment)
            yield self.bank
        finally:
            self.bank.open = False

    async def _probe(self, specs, _settings):
        self.started.extend(spec.name for spec in specs)
        missing = Probed("", "unreachable", problems=("No such file or directory",))
        return [replace(self.servers.get(spec.name, missing), name=spec.name) for spec in specs]

    async def _try_reset(self, trial, _settings):
        self.tried.append(trial)
        return self.verdict

    def _remember(self, probed, _settings):
        self.remembered.append(Snapshot.of(*(tool for server in probed for tool in server.tools)))

    def _worker(self, name, code):
        async def worker(*arguments):
            self.work[name] = arguments
            return code

        return worker


@pytest.fixture
def cli(tmp_path, capsys, monkeypatch) -> CommandLine:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("APPDATA", raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    line = CommandLine(tmp_path, capsys.readouterr, FakeBank({"recheck_effects": ()}))
    line.file("config.json", {})
    return line


@pytest.fixture
def tools() -> Callable[..., tuple[Tool, ...]]:
    """Tools of a server by name, with a description each that says what they do."""

    def make(server: str, **described: str) -> tuple[Tool, ...]:
        schema = {"type": "object", "properties": {"a": {"type": "number"}}}
        return tuple(Tool(ToolId(server, name), schema, description=text) for name, text in described.items())

    return make
