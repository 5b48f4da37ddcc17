"""A client connected to a bank over every transport in both protocol eras."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from server.surface import BankServer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # test modules of this folder share fake_bank; the folder is no package

from fake_bank import FakeBank, served_over_http  # noqa: E402

Connect = Callable[..., AbstractAsyncContextManager[Client]]
LEGACY = pytest.param("legacy", marks=pytest.mark.legacy_era, id="handshake-era")
MODERN = pytest.param("auto", id="2026-07-28")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("legacy_era") is not None:
            item.add_marker(pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"))


@pytest.fixture(params=[LEGACY, MODERN])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def bank() -> FakeBank:
    return FakeBank()


@pytest.fixture
def in_process(bank: FakeBank, era: str) -> Connect:
    """Connect to a server object over the `bank` fixture."""

    def connect(**options: Any) -> Client:
        return Client(BankServer(bank), mode=era, read_timeout_seconds=10, **options)

    return connect


@pytest.fixture(params=["in-process", "stdio", "http"])
def connect(request: pytest.FixtureRequest, era: str) -> Connect:
    """Connect over every transport to a bank of its own."""

    @asynccontextmanager
    async def connected(**options: Any) -> AsyncGenerator[Client]:
        options = {"mode": era, "read_timeout_seconds": 10, **options}
        match request.param:
            case "in-process":
                async with Client(BankServer(FakeBank()), **options) as client:
                    yield client
            case "stdio":
                program = StdioServerParameters(command=sys.executable, args=[str(HERE / "fake_bank.py")])
                async with Client(program, **options) as client:
                    yield client
            case _:
                async with served_over_http(FakeBank()) as url, Client(url, **options) as client:
                    yield client

    return connected
