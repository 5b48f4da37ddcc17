"""What stands in the project's Markdown: code blocks, command lines, tables, links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from generated import DOCUMENTS, PROJECT

__all__ = ["PAGES", "blocks", "command_lines", "links", "rows"]

PAGES = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted(DOCUMENTS.glob("*.md"))]

_BLOCK = re.compile(r"^```(.*?)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`(skillbank [^`\n]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(page: Path, kind: str) -> list[str]:
    """Return the code blocks of a page whose opening line says so."""
    return _labelled(page.read_text("utf-8"), kind)


def command_lines(page: Path) -> Iterator[list[str]]:
    """Yield the words of each complete `skillbank` command line of a page, without the program."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    found = [line for body in _labelled(text, "bash") for line in body.splitlines()]
    found += re.findall(r"^ {4,6}(skillbank .*)$", text, re.MULTILINE)
    found += _INLINE.findall(_BLOCK.sub("", text))
    for line in found:
        words = shlex.split(line, comments=True)
        if words[:1] == ["skillbank"] and not any(word.isupper() or "…" in word for word in words):
            yield words[1:]


def rows(page: Path, head: str) -> list[tuple[str, ...]]:
    """Return the cells of the table whose first head cell is this, code marks taken off."""
    lines = page.read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    body = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        body.append(tuple(_bare(cell) for cell in line.strip("| ").split(" | ")))
    return body


def links(page: Path) -> list[str]:
    """Return the targets of a page's links inside the project."""
    return [target for target in _LINK.findall(page.read_text("utf-8")) if "://" not in target]


def _labelled(text: str, kind: str) -> list[str]:
    return [body for label, body in _BLOCK.findall(text) if label.strip() == kind]


def _bare(cell: str) -> str:
    cell = cell.strip()
    for mark in ("``", "`"):
        if len(cell) > 2 * len(mark) and cell.startswith(mark) and cell.endswith(mark):
            return cell.removeprefix(mark).removesuffix(mark).strip()
    return cell
