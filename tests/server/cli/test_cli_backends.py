"""Models on the command line: chosen for a run, looked at by doctor, and no key in any text."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from catalog.config import ModelSpec
from server.backends.errors import BackendMisconfigured, BackendUnavailable, ContextTooLong
from server.reports import DoctorReport, ModelReport, RepairReport
from tests.server.backends.providers.anthropic_api import MODEL, AnthropicApi
from tests.server.backends.providers.local_servers import LocalServer
from tests.server.backends.providers.loopback import RIGHT_KEY, served

SOLVED = RepairReport(status="succeeded", outputs={"a": 1}, workflow={})


@pytest.mark.parametrize("command", ["solve", "repair"])
def test_a_model_is_chosen_for_one_run(cli: Any, command: str):
    cli.bank.answers = {"solve": SOLVED, "repair": SOLVED}
    subject = "a task" if command == "solve" else cli.file("w.json", {})
    assert cli(command, subject, "--model", "local:small").code == 0
    assert cli(command, subject).code == 0
    assert [asked[2].model for asked in cli.bank.asked] == [ModelSpec("local", "small"), None]


def test_a_model_that_is_none_is_misuse(cli: Any):
    ran = cli("solve", "a task", "--model", "gpt")
    assert ran.code == 2
    assert "there is no kind of model called 'gpt'; forms: anthropic:MODEL" in " ".join(ran.err.split())


ERRORS = {
    "down": (BackendUnavailable("m: nobody answers"), "model_unavailable", 4),
    "no key": (BackendMisconfigured("m: there is no key"), "model_unusable", 2),
    "too long": (ContextTooLong("m: too long"), "context_too_long", 1),
}


@pytest.mark.parametrize(("error", "kind", "code"), ERRORS.values(), ids=ERRORS)
def test_what_keeps_a_model_from_answering_has_a_kind_and_an_exit_code(
    cli: Any, error: Exception, kind: str, code: int
):
    cli.bank.answers = {"solve": error}
    ran = cli("solve", "a task", "--json")
    assert (ran.code, ran.json["error"]["kind"], ran.json["error"]["message"]) == (code, kind, str(error))


def test_doctor_draws_the_models_and_fails_when_one_is_unusable(cli: Any):
    fine = ModelReport(roles=("planner", "editor"), model="local:small", usable=True, offers="schema: x")
    wrong = ModelReport(
        roles=("judge",), model="openai:m", usable=False, offers="", problem="there is no key"
    )
    cli.bank.answers = {"doctor": DoctorReport(servers=(), models=(fine,))}
    assert cli("doctor").code == 0
    cli.bank.answers = {"doctor": DoctorReport(servers=(), models=(fine, wrong))}
    ran = cli("doctor")
    assert ran.code == 1
    assert "local:small" in ran.out
    assert "planner, editor" in ran.out
    assert "openai:m: there is no key" in ran.out


async def doctor(folder: Path, models: dict[str, str], **environment: str) -> tuple[int, dict[str, Any], str]:
    """Run `skillbank doctor --json` as its own process."""
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": {}, "skillbank": {"models": models}}))
    command = [sys.executable, "-m", "server.cli", "doctor", "--json"]
    command += ["--config", str(config), "--store", str(folder / "store.db")]
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    with anyio.fail_after(60):
        done = await anyio.run_process(command, check=False, env=inherited | environment)
    return done.returncode, json.loads(done.stdout), (done.stdout + done.stderr).decode()


@pytest.mark.anyio
async def test_doctor_as_a_process_says_what_each_model_offers_and_shows_no_key(tmp_path: Path):
    local = LocalServer(kind="vLLM", obeys=("structured_outputs",), key=RIGHT_KEY)
    async with served(AnthropicApi().app) as hosted, served(local.app) as compatible:
        models = {"default": f"anthropic:{MODEL}", "judge": f"openai-compatible:{compatible}/v1"}
        code, report, text = await doctor(
            tmp_path,
            models,
            ANTHROPIC_API_KEY=RIGHT_KEY,
            ANTHROPIC_BASE_URL=hosted,
            SKILLBANK_API_KEY=RIGHT_KEY,
        )
        wrong = "sk-wrong-0123456789abcdef"
        _, refused, shown = await doctor(
            tmp_path, models, ANTHROPIC_API_KEY=wrong, ANTHROPIC_BASE_URL=hosted, SKILLBANK_API_KEY=wrong
        )
    assert code == 1  # no server is configured
    assert [(m["roles"], m["offers"], m["context_tokens"]) for m in report["models"]] == [
        (["planner", "editor", "explorer"], "schema: output_config json_schema", 200_000),
        (["judge"], "schema: structured_outputs json (vLLM)", 32_768),
    ]
    assert [m["problem"].split(" (")[0] for m in refused["models"]] == [
        "the key was refused: check ANTHROPIC_API_KEY",
        "the key was refused: check SKILLBANK_API_KEY",
    ]
    assert RIGHT_KEY not in text
    assert wrong not in shown
    for file in tmp_path.iterdir():
        assert not {RIGHT_KEY.encode(), wrong.encode()} & {*file.read_bytes().split(b'"')}
