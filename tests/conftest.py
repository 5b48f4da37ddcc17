"""Fixtures that every test may use."""

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
