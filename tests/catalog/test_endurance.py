"""Long runs at a small size; `skillbank bench catalog` makes the long ones."""

from __future__ import annotations

import anyio
import pytest

from catalog.testing.endurance import connect_repeatedly, list_and_call_repeatedly

pytestmark = pytest.mark.anyio


async def test_memory_stays_flat_over_many_listings_and_calls() -> None:
    with anyio.fail_after(120):
        growth = await list_and_call_repeatedly(1_000)
    assert growth.cycles == 1_000
    assert growth.bytes_per_cycle < 1_000


@pytest.mark.parametrize(("defect", "started"), [("none", 20), ("breeds", 40), ("escapes", 40)])
async def test_connecting_again_and_again_leaves_nothing(defect: str, started: int) -> None:
    cycles = 20 if defect != "escapes" else 3
    with anyio.fail_after(120):
        left = await connect_repeatedly(cycles, defect)
    assert (left.living, left.descendants) == ((), ())
    assert left.started == started * cycles // 20
