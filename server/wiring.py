"""The composition root: from settings to an open bank, and back to nothing left behind."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from catalog.config import Config, secrets_of
from catalog.connections import open_connections
from catalog.embeddings import Embedder, open_minilm
from catalog.secret_store import NoticedSecrets
from catalog.tokens import login_secrets
from server.backends.roles import open_models
from server.bank import Bank, Context
from server.bank.afterwards import Afterwards
from server.bank.finding import Finder
from server.eras import known_eras
from server.execution.consent import Consent, NoConsent
from server.execution.spill import Spill
from server.models.runtime import host_of
from server.models.serving import local_serving
from server.progress import ProgressListener, ignore_progress
from server.sandbox.sandbox import open_sandbox
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
    publish: int | None = None,
    offered: Callable[[Config], Config] | None = None,
) -> AsyncGenerator[Bank]:
    """Open the bank of some settings; leaving it ends every server it started.

    No server is started before something needs it.

    Args:
        settings: where configuration and store are.
        consent: who is asked about calls that are not free; None: nobody.
        progress: told what is going on.
        memoise: False only to measure what remembering answers saves.
        publish: most skills that clients see as tools, None: as configured.
        offered: takes out of the configuration what this principal may not use; None: nothing.

    Raises:
        ConfigError: the configuration cannot be used.
        StoreUnusable: the store cannot be opened.
    """
    redactor = Redactor()
    secrets = NoticedSecrets(
        settings.open_secrets(), lambda name, kept: redactor.learn(login_secrets(name, kept))
    )
    config = settings.load_config().keeping(secrets)
    config = config if publish is None else replace(config, publish=publish)
    config = config if offered is None else offered(config)
    redactor.learn((*secrets_of(config, settings.environment), *settings.model_keys))
    store = open_sqlite_store(settings.store_path)
    finder = Finder(_embedder_of(config, settings), settings.store_path.with_suffix(".vectors"))
    try:
        eras = known_eras(store, config)
        afterwards = Afterwards()
        async with (
            open_connections(config, environment=settings.environment, eras=eras) as connections,
            open_models(
                config.models,
                settings.environment,
                serving=local_serving(host_of(settings)),
                memory=settings.store_path.with_suffix(".models.json"),
            ) as models,
            afterwards.attended(),
            open_sandbox() as sandbox,
        ):
            yield Bank(
                Context(
                    config=config,
                    store=store,
                    connections=connections,
                    consent=consent or NoConsent(),
                    progress=progress,
                    redact=redactor.redact,
                    clock=time.time,
                    config_path=settings.config_path,
                    store_path=settings.store_path,
                    models=models.choosing(settings.model),
                    finder=finder,
                    spill=Spill(settings.store_path.with_suffix(".values")),
                    memoise=memoise,
                    principal=settings.principal or "local",
                    afterwards=afterwards,
                    sandbox=sandbox,
                ),
                settings.environment,
            )
    finally:
        finder.close()
        store.close()


def _embedder_of(config: Config, settings: Settings) -> Callable[[], Embedder] | None:
    """Return what opens the configured source of vectors, else that of the extra; None: words alone."""
    spec = config.models.get("embeddings")
    if spec is None:
        return open_minilm
    if spec.kind == "none":
        return None

    def opened() -> Embedder:
        from server.backends.access import access_of
        from server.backends.embeddings import open_embeddings

        return open_embeddings(spec, access_of(spec, settings.environment))

    return opened
