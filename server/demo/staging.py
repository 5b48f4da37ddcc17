"""The stage of a demo: a folder with configuration, store and files, and the stories told there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from server.demo.errors import DemoRefused
from server.demo.files import build_files
from server.demo.report import Skipped
from server.demo.stories import Story, load_stories
from server.provisioning.demo_servers import demo_document
from server.settings import Settings, read_settings

__all__ = ["Stage", "open_folder", "prepare_stage"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What a demo stands on."""

    settings: Settings
    stories: tuple[Story, ...]
    skipped: tuple[Skipped, ...]

    @property
    def log_path(self) -> Path:
        """Where our own server's words to stderr go."""
        return self.settings.config_path.with_name("serve.log")


@contextmanager
def open_folder(keep: Path | None) -> Generator[Path]:
    """Yield the folder to work in: a temporary one, or an empty one that stays.

    Raises:
        DemoRefused: the folder to keep is not empty, or cannot be made.
    """
    if keep is None:
        with TemporaryDirectory(prefix="skillbank-demo-") as folder:
            yield Path(folder).resolve()
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        taken = next(keep.iterdir(), None)
    except OSError as error:
        raise DemoRefused(f"{keep}: {error.strerror}") from error
    if taken is not None:
        raise DemoRefused(f"{keep} is not empty; --keep needs a new or an empty folder")
    yield keep.resolve()


def prepare_stage(folder: Path, only: str | None) -> Stage:
    """Write configuration and files into an empty folder; stories whose needs are missing are skipped.

    Args:
        folder: where everything goes.
        only: name of the one story to tell; None: all.

    Raises:
        DemoServersMissing: naming every server that is not installed.
        DemoRefused: no story has that name.
    """
    files = folder / "files"
    wanted = load_stories(files, only)
    has_git = shutil.which("git") is not None
    told = tuple(story for story in wanted if has_git or "git" not in story.servers)
    settings = _configured(folder, told)
    files.mkdir()
    build_files(files, with_git=has_git)
    reason = "git is not installed, and the server of this story reads repositories with it"
    return Stage(settings, told, tuple(Skipped(name=s.name, reason=reason) for s in wanted if s not in told))


def _configured(folder: Path, stories: Sequence[Story]) -> Settings:
    document = demo_document(sorted({server for story in stories for server in story.servers}))
    config = folder / "config.json"
    config.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return read_settings(config=config, store=folder / "store.db")
