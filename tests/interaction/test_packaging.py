"""What registries and bundles are told of us agrees with the program, and their own tools take it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from server.cli.app import app
from server.cli.ports import product_wiring
from server.settings import CONFIG_VARIABLE, MODEL_VARIABLE, STORE_VARIABLE

PACKAGING = Path(__file__).parents[2] / "packaging"
VALIDATOR = "@anthropic-ai/mcpb@2.1.2"


def read(name: str) -> dict:
    return json.loads((PACKAGING / name).read_text("utf-8"))


def project() -> dict:
    import tomllib

    return tomllib.loads((PACKAGING.parent / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_versions_are_those_of_the_project():
    entry, manifest = read("server.json"), read("manifest.json")
    said = {entry["version"], entry["packages"][0]["version"], manifest["version"]}
    assert said == {project()["version"]}
    assert entry["packages"][0]["identifier"] == project()["name"]


def test_the_registry_entry_starts_this_program_with_variables_it_reads():
    (package,) = read("server.json")["packages"]
    words = [argument["value"] for argument in package["packageArguments"]]
    context = app.make_context("skillbank", list(words), obj=product_wiring(), resilient_parsing=True)
    assert app.get_command(context, words[0]) is not None
    named = {variable["name"] for variable in package["environmentVariables"]}
    assert named == {CONFIG_VARIABLE, STORE_VARIABLE, MODEL_VARIABLE}
    assert len(read("server.json")["description"]) <= 100


def test_the_registry_entry_has_the_fields_that_a_registry_requires():
    """Checked by hand: the schema that it names is not at hand here."""
    entry = read("server.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert entry["$schema"].startswith("https://static.modelcontextprotocol.io/schemas/")
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert 1 <= len(entry["description"]) <= 100
    for package in entry["packages"]:
        assert {"registryType", "identifier", "transport"} <= package.keys()
        assert package["transport"]["type"] in {"stdio", "streamable-http", "sse"}
        assert all(argument["type"] in {"positional", "named"} for argument in package["packageArguments"])
        assert all(variable["name"] for variable in package["environmentVariables"])


def test_the_bundle_starts_what_is_there():
    server = read("manifest.json")["server"]
    assert (PACKAGING.parent / server["entry_point"]).is_file()
    module, *words = server["mcp_config"]["args"][1:]
    assert module == "server.cli"
    context = app.make_context("skillbank", list(words), obj=product_wiring(), resilient_parsing=True)
    command = app.get_command(context, words[0])
    assert command is not None
    command.make_context(words[0], words[1:], parent=context)  # raises for words it does not know


@pytest.mark.live
def test_the_bundle_s_own_validator_takes_the_manifest(tmp_path: Path):
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("needs npx")
    copy = tmp_path / "manifest.json"
    shutil.copy(PACKAGING / "manifest.json", copy)
    there = subprocess.run(
        [npx, "-y", VALIDATOR, "--version"], capture_output=True, text=True, timeout=240, cwd=tmp_path
    )
    if there.returncode:
        pytest.skip(f"{VALIDATOR} cannot be had from npm: {there.stderr[-200:]}")
    validate = [npx, "-y", VALIDATOR, "validate"]
    good = subprocess.run([*validate, str(copy)], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert good.returncode == 0, good.stdout + good.stderr
    copy.write_text(json.dumps({**read("manifest.json"), "server": {"type": "cobol"}}))
    bad = subprocess.run([*validate, str(copy)], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert bad.returncode != 0
