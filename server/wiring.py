"""The composition root: from settings to an open bank, and back to nothing left behind."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from catalog.config import Config, secrets_of
from catalog.connections import open_connections
from server.bank import Bank, Context
from server.bank.afterwards import Afterwards
from server.execution.consent import Consent, NoConsent
from server.execution.spill import Spill
from server.progress import ProgressListener, ignore_progress
from server.settings import Settings
from skills_store.redaction import Redactor
from skills_store.sqlite import open_sqlite_store

__all__ = ["open_bank"]


@asynccontextmanager
async def open_bank(
    settings: Settings,
    *,
    consent: Consent | None = None,
    progress: ProgressListener = ignore_progress,
    memoise: bool = True,
) -> AsyncGenerator[Bank]:
    """Open the bank of some settings; leaving it ends every server it started.

    No server is started before something needs it.

    Args:
        settings: where configuration and store are.
        consent: who is asked about calls that are not free; None: nobody.
        progress: told what is going on.
        memoise: False only to measure what remembering answers saves.

    Raises:
        ConfigError: the configuration cannot be used.
        StoreUnusable: the store cannot be opened.
    """
    config = settings.load_config()
    store = open_sqlite_store(settings.store_path)
    try:
        afterwards = Afterwards()
        async with (
            open_connections(config, environment=settings.environment) as connections,
            afterwards.attended(),
        ):
            yield Bank(
                Context(
                    config=config,
                    store=store,
                    connections=connections,
                    consent=consent or NoConsent(),
                    progress=progress,
                    redact=Redactor(_secrets(config, settings)).redact,
                    clock=time.time,
                    config_path=settings.config_path,
                    store_path=settings.store_path,
                    spill=Spill(settings.store_path.with_suffix(".values")),
                    memoise=memoise,
                    afterwards=afterwards,
                )
            )
    finally:
        store.close()


def _secrets(config: Config, settings: Settings) -> Iterable[str]:
    """Return the values that must never be stored: variables and headers that servers are given."""
    return secrets_of(config, settings.environment)
