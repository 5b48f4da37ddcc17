"""Fixtures that every test may use, and what runs only when it is asked for."""

from __future__ import annotations

import os
import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell: programs under test would inherit being deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"  # never that of whoever runs tests


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what takes minutes unless its mark is asked for by name."""
    unasked = {
        "live_servers": "installs 40 servers from the registries; run it: -m live_servers",
        "real_training": "installs torch and TRL into a Python of its own; run it: -m real_training",
        "conformance": "runs the official suite from npm for some minutes; run it: -m conformance",
    }
    for mark, reason in unasked.items():
        if mark in config.option.markexpr:
            continue
        for item in items:
            if mark in item.keywords:
                item.add_marker(pytest.mark.skip(reason=reason))
