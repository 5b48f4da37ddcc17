"""The files of a stand-alone server: a skill, the servers it needs, and the part of skillbank that runs it.

No second implementation: the modules that `server.standalone` needs are found by their imports and
carried along as they are, so that nothing but libraries has to be installed.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from catalog.config import ServerSpec
from catalog.effects import Effect, EffectTable, Reset
from catalog.plain_text import plain_text
from server.bank.context import Context
from skills_store.interchange.bundle import render_bundle
from skills_store.interchange.portable import json_text
from skills_store.skill import Skill

__all__ = ["standalone_files"]

_PACKAGES = ("catalog", "skills_store", "server")
_ROOTS = ("server.standalone", "server.sandbox.monty_launcher", "server.sandbox.function_worker")
_HOME = Path(__file__).resolve().parents[3]
_DISTRIBUTIONS = {"re2": "google-re2", "pydantic_core": "pydantic", "opentelemetry": "opentelemetry-api"}
_OPTIONAL = frozenset({"keyring"})
_PLACEHOLDER = re.compile(r"^\$\{[^}]+\}$")
_SERVE = '''"""Serves one skill as an MCP server on stdio: `python serve.py`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

from server.standalone import serve_folder  # noqa: E402

if __name__ == "__main__":
    sys.exit(serve_folder(HERE, sys.argv[1:]))
'''


@dataclass(frozen=True, slots=True)
class _Parts:
    """Modules of ours by their file below `lib`, and the names of all that they import besides."""

    files: Mapping[str, bytes]
    imported: frozenset[str]


def standalone_files(skill: Skill, called: Iterable[Skill], context: Context) -> dict[str, bytes]:
    """Return the files of a folder that serves a skill, by path inside it."""
    parts = _closure(_ROOTS)
    servers = sorted({pin.tool.server for pin in skill.pins})
    has_code = any(node.code for one in (skill, *called) for node in one.workflow)
    texts = {
        "serve.py": _SERVE,
        "mcp.json": json_text(context.redact(_configuration(servers, context))),
        "requirements.txt": "\n".join(_requirements(parts.imported, has_code=has_code)) + "\n",
        "README.md": _readme(skill, servers),
    }
    files = {path: text.encode() for path, text in texts.items()}
    library = {f"lib/{path}": content for path, content in parts.files.items()}
    return {**files, "skill.json": render_bundle(skill, [*called]), **library}


def _closure(roots: Iterable[str]) -> _Parts:
    files: dict[str, bytes] = {}
    others: set[str] = set()
    waiting, seen = [*roots], set[str]()
    while waiting:
        module = waiting.pop()
        path = _file_of(module)
        if module in seen or path is None:
            continue
        seen.add(module)
        content = path.read_bytes()
        files[path.relative_to(_HOME).as_posix()] = content
        parents = module.split(".")
        waiting += [".".join(parents[:count]) for count in range(1, len(parents))]
        for name in _imports(ast.parse(content)):
            if name.split(".")[0] in _PACKAGES:
                waiting.append(name)
            else:
                others.add(name.split(".")[0])
    return _Parts(dict(sorted(files.items())), frozenset(others - sys.stdlib_module_names))


def _file_of(module: str) -> Path | None:
    place = _HOME / module.replace(".", "/")
    options = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in options if path.is_file()), None)


def _imports(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _requirements(imported: frozenset[str], *, has_code: bool) -> list[str]:
    """Return what has to be installed, with the bounds that skillbank itself has."""
    unneeded = _OPTIONAL if has_code else _OPTIONAL | {"pydantic_monty"}
    wanted = {_DISTRIBUTIONS.get(name, name).replace("_", "-").lower() for name in imported - unneeded}
    known = importlib.metadata.requires("skillbank") or []
    lines = {re.split(r"[\s;<>=!~\[]", line)[0].lower(): line.split(";")[0].strip() for line in known}
    return sorted(lines.get(name, name) for name in wanted)


def _configuration(servers: Iterable[str], context: Context) -> dict[str, JsonValue]:
    """Return the tool servers a skill needs, their secrets left to the environment."""
    config = context.config
    specs = {name: spec for name in servers if (spec := config.servers.get(name)) is not None}
    effects, reset = _operators_word(specs, config.effects)
    return {
        "mcpServers": {name: _server(spec) for name, spec in specs.items()},
        "skillbank": {"effects": effects, "reset": reset},
    }


def _operators_word(
    specs: Mapping[str, ServerSpec], table: EffectTable
) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    effects: dict[str, JsonValue] = {
        name: {pattern: effect.value for pattern, effect in table.effects.get(name, _NOTHING).items()}
        for name in specs
        if table.effects.get(name)
    }
    modes = {name: table.reset_mode(name) for name in specs}
    return effects, {name: mode.value for name, mode in modes.items() if mode is not Reset.NONE}


_NOTHING: Mapping[str, Effect] = {}


def _server(spec: ServerSpec) -> dict[str, JsonValue]:
    if spec.url is not None:
        headers: dict[str, JsonValue] = {name: _outside(name, value) for name, value in spec.headers.items()}
        return {"url": spec.url, "type": spec.transport, **({"headers": headers} if headers else {})}
    variables: dict[str, JsonValue] = {name: _outside(name, value) for name, value in spec.env.items()}
    started: dict[str, JsonValue] = {"command": spec.command, "args": [*spec.args]}
    return {**started, **({"env": variables} if variables else {})}


def _outside(name: str, value: str) -> str:
    """Return a value as it is exported: one that is no placeholder may be a secret and becomes one."""
    if _PLACEHOLDER.match(value):
        return value
    return f"${{{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}}}"


def _readme(skill: Skill, servers: Iterable[str]) -> str:
    said = plain_text(" ".join(skill.description.split()), 1_000)
    named = ", ".join(servers) or "none"
    return (
        f"# {skill.name}\n\n{said}\n\nAn MCP server with one tool, made by skillbank from version"
        f" {skill.version} of this skill. Tool servers it needs: {named} (`mcp.json`; values such as"
        " `${NAME}` come from the environment).\n\n"
        "```bash\npython -m venv .venv\n.venv/bin/pip install -r requirements.txt\n"
        ".venv/bin/python serve.py\n```\n"
    )
