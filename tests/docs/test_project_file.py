"""The project file says what the packages need, and importing them costs no more than it should."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

from generated import PACKAGES, PROJECT

MODULES = (
    "catalog",
    "catalog.config",
    "catalog.effects",
    "catalog.embeddings",
    "catalog.schema",
    "catalog.search",
    "skills_store",
    "skills_store.admission",
    "skills_store.retrieval",
    "skills_store.sqlite",
    "skills_store.store",
    "skills_store.workflow.check",
)
HEAVY = (
    "mcp",
    "mcp_types",
    "httpx2",
    "starlette",
    "anthropic",
    "openai",
    "networkx",
    "onnxruntime",
    "tokenizers",
)


def project() -> dict:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]


def imported() -> set[str]:
    """Return the top-level modules that the packages import, their own left out."""
    found: set[str] = set()
    for path in (path for package in PACKAGES for path in (PROJECT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(PACKAGES) - set(sys.stdlib_module_names)


def test_importing_catalog_and_skills_store_loads_neither_the_protocol_nor_a_model_sdk():
    program = f"import sys, {', '.join(MODULES)}; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_serving_and_every_command_start_without_a_model_sdk():
    modules = ("server.cli.app", "server.surface", "server.wiring", "server.bank", "server.backends.roles")
    program = (
        f"import sys, {', '.join(modules)}; print(*sorted(set(sys.modules) & {{'anthropic', 'openai'}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    owners = {**packages_distributions(), "opentelemetry": ["opentelemetry-api", "opentelemetry-sdk"]}
    needed = {owner.lower().replace("_", "-") for name in imported() for owner in owners.get(name, [name])}
    declared = named(project()["dependencies"])
    extras = project()["optional-dependencies"]
    others = [
        *extras["embeddings"],
        *extras["demo"],
        *extras["keyring"],
        *extras["code"],
        *extras["otel"],
        *extras["train"],
    ]
    # Which are in fastmcp, and in pydantic-monty.
    optional = named(others) | {"fastmcp-slim", "pydantic-monty-client"}
    assert needed - declared - optional == {"pydantic-core"}  # one version goes with each pydantic
    assert declared - needed == set()


def named(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9-]+", line)[0].lower() for line in requirements}


def test_the_licence_is_named_and_there():
    assert project()["license"] == "Apache-2.0"
    assert "Apache License" in (PROJECT / "LICENSE").read_text("utf-8")
