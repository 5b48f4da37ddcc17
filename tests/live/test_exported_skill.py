"""A skill of real servers leaves the bank: serves itself in a fresh environment, and comes back equal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.legacy_era]

CLI = [sys.executable, "-m", "server.cli"]
NAME, FOLDER = "litres_per_100km", "litres-per-100km"
ARGUMENTS = {"miles": 420, "gallons": 12}


def skillbank(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*CLI, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert not check or done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return done


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Break, repair, compile and admit the fuel story; return the options that name its bank."""
    kept = tmp_path_factory.mktemp("bank") / "kept"
    skillbank("demo", "--story", NAME, "--keep", str(kept), "--json")
    return ["--config", str(kept / "config.json"), "--store", str(kept / "store.db")]


@pytest.fixture(scope="module")
def fresh(bank: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Export the skill as a server; return its folder and a fresh environment's Python."""
    place = tmp_path_factory.mktemp("fresh")
    skillbank("export", NAME, "--format", "server", "--output", str(place), *bank)
    folder, environment = place / f"{FOLDER}-server", place / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, timeout=120)
    python = environment / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "-r", str(folder / "requirements.txt")]
    done = subprocess.run(install, capture_output=True, text=True, timeout=900, check=False)
    assert "No matching distribution" not in done.stderr, done.stderr[-500:]
    if done.returncode != 0:
        pytest.skip(f"the registry did not give the requirements: {done.stderr[-500:]}")
    absent = subprocess.run([str(python), "-c", "import server"], capture_output=True, cwd=place, check=False)
    assert absent.returncode != 0, "the environment has no skillbank of its own"
    return folder, python


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_it_serves_itself_in_a_fresh_environment(fresh: tuple[Path, Path], era: str):
    folder, python = fresh
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    parameters = StdioServerParameters(
        command=str(python),
        args=[str(folder / "serve.py")],
        env={"PATH": path, "HOME": str(folder)},
        cwd=folder,
    )
    with anyio.fail_after(120):
        async with Client(parameters, mode=era, read_timeout_seconds=90) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool(NAME, ARGUMENTS)
            refused = await client.call_tool(NAME, {"miles": "far", "gallons": 12})
    assert [tool.name for tool in tools] == [NAME]
    assert set(tools[0].input_schema["properties"]) == set(ARGUMENTS)
    assert tools[0].annotations is not None
    assert tools[0].annotations.read_only_hint is True
    assert result.structured_content is not None
    assert result.structured_content[NAME] == pytest.approx(6.7204, abs=0.001)
    assert refused.is_error


@pytest.mark.parametrize("form", ["bundle", "skill-md"])
def test_it_comes_back_with_the_same_digest_and_waits_for_proof(bank: list[str], tmp_path: Path, form: str):
    exported = json.loads(
        skillbank("export", NAME, "--format", form, "--output", str(tmp_path), "--json", *bank).stdout
    )
    config = bank[1]
    other = ["--config", config, "--store", str(tmp_path / "other.db")]
    taken = json.loads(skillbank("import", exported["written"][0], "--json", *other).stdout)
    assert taken["digest"] == exported["digest"]
    assert taken["skill"]["state"] == "shadow"
    refused = skillbank("skills", "approve", NAME, "--yes", *other, check=False)
    assert refused.returncode == 1
    skillbank("skills", "test", NAME, *other)
    skillbank("skills", "approve", NAME, "--yes", *other)
    again = json.loads(
        skillbank("export", NAME, "--output", str(tmp_path / "again"), "--json", *other).stdout
    )
    assert again["digest"] == exported["digest"]
    inputs = json.dumps(ARGUMENTS)
    ran = json.loads(skillbank("skills", "run", NAME, "--inputs", inputs, "--json", *other).stdout)
    assert ran["outputs"][NAME] == pytest.approx(6.7204, abs=0.001)


def test_the_package_runs_by_its_own_script(bank: list[str], tmp_path: Path):
    skillbank("export", NAME, "--format", "skill-md", "--output", str(tmp_path), *bank)
    script = tmp_path / FOLDER / "scripts" / "run.py"
    given = ["--config", bank[1], "--inputs", json.dumps(ARGUMENTS)]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, str(script), *given],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[NAME] == pytest.approx(6.7204, abs=0.001)
