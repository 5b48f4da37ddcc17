"""When `.ci/run` leaves the suite of real servers out: only where it can be told that it may."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "catalog-changed"

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


class Clone:
    """A clone of a small project that has the script, with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.home = folder / "home"
        self.home.mkdir()
        origin = folder / "origin"
        (origin / ".ci").mkdir(parents=True)
        shutil.copy(SCRIPT, origin / ".ci")
        self.git("init", "-q", "-b", "main", at=origin)
        self.write("catalog/a.py", "first", at=origin)
        self.git("clone", "-q", str(origin), str(self.folder), at=folder)

    def git(self, *words: str, at: Path | None = None) -> None:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        subprocess.run(["git", *who, *words], cwd=at or self.folder, check=True, env=self.environment())

    def write(self, name: str, text: str, *, commit: bool = True, at: Path | None = None) -> None:
        path = (at or self.folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if commit:
            self.git("add", "-A", at=at)
            self.git("commit", "-q", "-m", text, at=at)

    def environment(self) -> dict[str, str]:
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home)}

    def asked(self, *words: str) -> tuple[bool, str]:
        """Return whether the suite has to run, and what the script says of it."""
        script = str(self.folder / ".ci" / "catalog-changed")
        done = subprocess.run(
            [script, *words], cwd=self.folder, capture_output=True, text=True, env=self.environment()
        )
        assert (done.returncode in (0, 1), done.stderr) == (True, "")
        return done.returncode == 0, done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_clean_clone_of_main_cannot_tell_and_runs(clone: Clone):
    assert clone.asked() == (True, "it cannot be told from this clone what changed")


def test_a_clone_without_any_remote_cannot_tell_and_runs(clone: Clone):
    clone.git("remote", "remove", "origin")
    clone.write("docs/a.md", "second")
    assert clone.asked()[0] is True


def test_work_elsewhere_leaves_it_out_and_says_since_when(clone: Clone):
    clone.write("docs/a.md", "second")
    runs, why = clone.asked()
    assert runs is False
    assert why.startswith("nothing in catalog tests/live pyproject.toml .ci changed since ")


def test_a_change_of_the_catalog_runs_also_when_a_later_commit_is_elsewhere(clone: Clone):
    clone.write("catalog/a.py", "second")
    clone.write("docs/a.md", "third")
    runs, why = clone.asked()
    assert runs is True
    assert why.endswith("catalog/a.py")


def test_an_uncommitted_change_runs(clone: Clone):
    clone.write("catalog/b.py", "second", commit=False)
    assert clone.asked()[0] is True


def test_what_passed_on_this_machine_is_not_run_again_until_it_changes(clone: Clone):
    clone.asked("--passed")
    runs, why = clone.asked()
    assert (runs, why.endswith("as when the suite last passed on this machine")) == (False, True)
    clone.write("catalog/a.py", "second")
    assert clone.asked()[0] is True
