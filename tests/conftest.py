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
    """Skip the large live suite unless its mark is asked for by name."""
    if "live_servers" in config.option.markexpr:
        return
    unasked = pytest.mark.skip(reason="installs 40 servers from the registries; run it: -m live_servers")
    for item in items:
        if "live_servers" in item.keywords:
            item.add_marker(unasked)
