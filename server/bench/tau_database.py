"""The database of a τ²-bench server as a digest: what two runs leave is compared by it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

__all__ = ["database_digest"]


def database_digest(folder: Path, domain: str) -> str:
    """Return a digest of the database as a domain's server has written it down in its folder for state.

    Raises:
        FileNotFoundError: it has written nothing down yet.
    """
    key = hashlib.sha256(f"tau2/{domain}/default".encode()).hexdigest()
    document = json.loads((folder / f"{key}.json").read_text(encoding="utf-8"))
    return hashlib.sha256(json.dumps(document["db"], sort_keys=True).encode()).hexdigest()
