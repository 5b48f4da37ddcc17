"""What a reader would refuse in a function at once: imports and calls that never work, and impurity.

A lint, never the boundary: it makes refusals early and readable, and any of it can be got around.
What confines code is `server.sandbox`.

Paper: FlowEvo (gate 3, `static_safety_scan`): banned imports and calls by name.
Differs: it decides nothing about safety; what reads the clock is named too, since such a function
    gives something else every time; and a body that stands on nothing is told here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from skills_store.code.reading import parse_code
from skills_store.errors import MalformedCode

__all__ = ["constant_body", "lint_code"]

_BANNED_MODULES = frozenset(
    {
        *("os", "sys", "subprocess", "socket", "requests", "pathlib", "shutil", "ctypes", "importlib"),
        *("builtins", "threading", "multiprocessing", "asyncio", "signal", "http", "urllib.request"),
        *("io", "tempfile", "pickle", "marshal", "gc", "inspect", "code", "pty", "resource", "mmap"),
        *("httpx", "aiohttp", "ftplib", "smtplib", "ssl", "select", "selectors", "concurrent", "runpy"),
    }
)
_IMPURE_MODULES = frozenset({"time", "secrets", "getpass", "platform", "locale"})
_BANNED_CALLS = frozenset(
    {
        *("eval", "exec", "compile", "__import__", "open", "input", "globals", "locals", "vars"),
        *("breakpoint", "memoryview", "exit", "quit"),
    }
)
_CLOCK = frozenset({"now", "today", "utcnow", "uuid1", "uuid4", "urandom"})


def lint_code(source: str) -> tuple[str, ...]:
    """Return what is refused in a source text, each with its line; empty when nothing is.

    Raises:
        MalformedCode: it is no Python.
    """
    found = [problem for node in ast.walk(parse_code(source)) for problem in _problems(node)]
    return tuple(dict.fromkeys(f"line {line}: {said}" for line, said in sorted(found)))


def _problems(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Import():
            for alias in node.names:
                yield from _module(alias.name, node.lineno)
        case ast.ImportFrom():
            yield from _module(node.module or "", node.lineno)
            for alias in node.names:
                yield from _module(f"{node.module}.{alias.name}", node.lineno)
        case ast.Call(func=ast.Name(id=name)) if name in _BANNED_CALLS:
            yield node.lineno, f"a skill may not call {name}"
        case ast.Call(func=ast.Attribute(attr=name)) if name in _CLOCK:
            yield node.lineno, f"{name}() gives something else every time: take the moment as an input"
        case ast.Attribute(attr=name) if name.startswith("__") and name.endswith("__"):
            yield node.lineno, f"a skill may not reach for {name}"
        case ast.AsyncFunctionDef() | ast.Await():
            yield node.lineno, "a skill is a plain function, not an async one"
        case ast.Global():
            yield node.lineno, "a skill keeps nothing between calls: no global"
        case _:
            return


def _module(name: str, line: int) -> Iterator[tuple[int, str]]:
    root = name.split(".")[0]
    if root in _BANNED_MODULES or name in _BANNED_MODULES:
        yield line, f"a skill may not import {root if root in _BANNED_MODULES else name}"
    elif root in _IMPURE_MODULES:
        yield line, f"{root} gives something else every time: take it as an input"


def constant_body(source: str, entry: str) -> str | None:
    """Return what a function returns whatever it is given, None where it may depend on something.

    Paper: FlowEvo (gate 4, `trivial_solution_check`): a body that returns one constant or an empty
        container.

    Text that is no Python returns nothing that is known; `lint_code` says what is wrong with it.
    """
    try:
        tree = parse_code(source)
    except MalformedCode:
        return None
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry]
    if not found:
        return None
    body = [node for node in found[-1].body if not _is_prose(node)]
    if all(isinstance(node, ast.Pass) for node in body):
        return "nothing"
    last = body[-1] if len(body) == 1 else None
    if isinstance(last, ast.Return) and (last.value is None or _is_constant(last.value)):
        return "nothing" if last.value is None else ast.unparse(last.value)
    return None


def _is_prose(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return all(_is_constant(element) for element in elements)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_constant(key) for key in keys) and all(
                map(_is_constant, values)
            )
        case ast.Call(func=ast.Name(id="list" | "dict" | "tuple" | "str" | "int"), args=[], keywords=[]):
            return True
        case _:
            return False
