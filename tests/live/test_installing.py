"""An outage of a registry is told, never passed over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from installing import InstallFailed, install
from real_servers import Environment

NOWHERE = "http://127.0.0.1:9/simple"


def test_a_registry_that_cannot_be_reached_fails_with_its_clients_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": NOWHERE,
        "PIP_RETRIES": "0",
    }.items():
        monkeypatch.setenv(name, value)
    wanted = {"one": Environment(registry="pypi", packages=("mcp-hashlib==0.1.2",))}

    for _ in range(2):  # what failed once counts as not installed
        with pytest.raises(InstallFailed, match=r"mcp-hashlib==0\.1\.2\n[^$]*Is the registry reachable\?"):
            install(wanted)
