"""The settings of one principal: a store, secrets and a view of the servers of its own.

What the operator configured with credentials of their own is offered to nobody else unless the
configuration shares it (`principals`); what a server needs of a principal, an answer to an input or a
login, is kept beside that principal's store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from catalog.config import Config, carries_credentials
from catalog.whole_file import write_whole
from server.bank import Bank
from server.settings import Settings
from server.wiring import open_bank

__all__ = ["offered_to", "open_bank_of", "settings_of"]


def settings_of(settings: Settings, issuer: str, subject: str) -> Settings:
    """Return the settings of a principal; its folder is named by a digest of who it is."""
    name = hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:32]
    folder = settings.store_path.with_suffix(".principals") / name
    return replace(settings, store_path=folder / "store.db", principal=subject)


def offered_to(config: Config, subject: str) -> Config:
    """Return the configuration with the servers that a principal may use.

    Named in `principals` for the subject, else for everybody (`*`); where it says nothing, those that
    carry no credentials of the operator.
    """
    bare = subject.removeprefix("sub:").removeprefix("client:")
    shared = config.principals.get(bare, config.principals.get("*"))
    servers = {
        name: spec
        for name, spec in config.servers.items()
        if (
            not carries_credentials(spec)
            if shared is None
            else any(fnmatchcase(name, pattern) for pattern in shared)
        )
    }
    return replace(config, servers=servers)


@asynccontextmanager
async def open_bank_of(settings: Settings, issuer: str, subject: str) -> AsyncGenerator[Bank]:
    """Open the bank of a principal, made where it comes for the first time."""
    own = settings_of(settings, issuer, subject)
    _note(own.store_path.parent, issuer, subject)
    async with open_bank(own, offered=lambda config: offered_to(config, subject)) as bank:
        yield bank


def _note(folder: Path, issuer: str, subject: str) -> None:
    """Say in a principal's folder whose it is, for the operator."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    said = json.dumps({"issuer": issuer, "subject": subject}, indent=1)
    write_whole(folder / "who.json", said.encode())
