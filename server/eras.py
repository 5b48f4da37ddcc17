"""The protocol era of each server, kept from one run of the program to the next.

What was found for a server that is started another way now is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.canonical import digest
from catalog.config import Config, ServerSpec
from catalog.era import Era, KnownEra
from skills_store.store import Store

__all__ = ["era_of", "known_eras", "save_eras"]


def known_eras(store: Store, config: Config) -> dict[str, Era]:
    """Return what the configured servers were found to speak, started as they are now."""
    return {
        server: known.era
        for server, known in store.eras().items()
        if (spec := config.servers.get(server)) is not None and known.launch == _launch_hash(spec)
    }


def save_eras(found: Mapping[str, Era], store: Store, config: Config, at: float) -> None:
    """Keep what configured servers were found to speak.

    Args:
        found: by the name of the server.
        store: where.
        config: says how each is started.
        at: Unix seconds.
    """
    servers = config.servers
    kept = {server: era_of(servers[server], era) for server, era in found.items() if server in servers}
    if kept:
        store.save_eras(kept, at)


def era_of(spec: ServerSpec, era: Era) -> KnownEra:
    """Return what a server was found to speak, as it is kept."""
    return KnownEra(era, _launch_hash(spec))


def _launch_hash(spec: ServerSpec) -> str:
    return digest([spec.transport, spec.launch])
