"""Real servers that nobody here wrote, all at once: listed, called, and each one's warts its own.

`pytest -m live_servers` installs and runs them; without being asked for they are skipped.
"""

from __future__ import annotations

import http.server
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from installing import install
from real_servers import Call, Fleet, RealServer, configuration, furnish, load_fleet
from recording import Record, came_of, record

from catalog.listing import MAX_DESCRIPTION
from catalog.result import CallFailure, CallOutcome

pytestmark = [pytest.mark.live, pytest.mark.live_servers]

KNOWN = load_fleet()
RUNNABLE = {server.name for server in KNOWN.runnable().servers}


def each(wanted: list[RealServer]) -> pytest.MarkDecorator:
    """Run a test for each of these servers; those without a runtime are skipped."""
    no_npm = pytest.mark.skip(reason="needs npm and node")
    cases = [
        pytest.param(server, id=server.name, marks=() if server.name in RUNNABLE else no_npm)
        for server in wanted
    ]
    return pytest.mark.parametrize("server", cases)


usable = [server for server in KNOWN.servers if server.unusable is None]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder that is served on this machine, and its address."""
    folder = tmp_path_factory.mktemp("work")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def fleet(web: tuple[Path, str]) -> Fleet:
    """The installed servers, ready to be started."""
    work, address = web
    runnable = KNOWN.runnable()
    for server in runnable.servers:
        furnish(work / server.name)
    return configuration(runnable, install(runnable.environments), work, address, uuid.uuid4().hex)


@pytest.fixture(scope="module")
def made(fleet: Fleet, web: tuple[Path, str]) -> Record:
    """What came of running them all."""
    return anyio.run(record, fleet, web[0])


def assert_came(outcome: CallOutcome, call: Call) -> None:
    kind, words = came_of(outcome)
    assert kind == (call.fails or "success"), words[:2000]
    assert call.answer in words, words[:2000]


def as_filled(fleet: Fleet, server: RealServer) -> RealServer:
    return next(filled for filled in fleet.servers if filled.name == server.name)


def test_there_are_at_least_25_servers_with_300_tools(made: Record):
    ready = [report for report in made.reports.values() if report.status == "ready"]

    assert len(ready) >= 25
    assert len(made.snapshot) >= 300
    assert len(made.snapshot) == sum(len(report.tools) for report in ready)


@each(usable)
def test_it_lists_all_of_its_tools(server: RealServer, made: Record):
    report = made.reports[server.name]

    assert report.status == "ready", report.problems
    assert len(report.tools) == server.tools
    assert len(made.snapshot.of_server(server.name)) == server.tools


@each([server for server in KNOWN.servers if server.unusable is not None])
def test_one_without_a_tool_list_is_named_with_the_reason(server: RealServer, made: Record):
    report = made.reports[server.name]

    assert report.status == "failed"
    assert server.unusable in report.problems[0]
    assert server.name not in made.snapshot.servers


@each(usable)
def test_its_calls_come_to_what_they_should(server: RealServer, made: Record, fleet: Fleet):
    outcomes = made.calm[server.name]

    assert any(call.fails is None for call in server.calls)
    for outcome, call in zip(outcomes, as_filled(fleet, server).calls, strict=True):
        assert_came(outcome, call)


@each([server for server in usable if server.hangs is None])
def test_it_answers_the_same_while_others_hang_and_misbehave(server: RealServer, made: Record, fleet: Fleet):
    filled = as_filled(fleet, server)

    for outcome, call, before in zip(
        made.stormy[server.name], filled.calls, made.calm[server.name], strict=True
    ):
        assert came_of(outcome)[0] == came_of(before)[0], came_of(outcome)[1][:2000]
        if not isinstance(outcome, CallFailure):
            assert_came(outcome, call)
    assert made.generations[server.name] == 1


@each([server for server in usable if server.storm is not None])
def test_what_makes_it_odd_does_not_keep_its_answers_back(server: RealServer, made: Record, fleet: Fleet):
    storm = as_filled(fleet, server).storm
    assert storm is not None

    for outcome in made.storms[server.name]:
        assert_came(outcome, storm)
        assert len(came_of(outcome)[1].encode()) >= server.largest_answer_bytes


@each([server for server in usable if server.noise])
def test_what_it_prints_beside_its_messages_is_counted_and_shown(server: RealServer, made: Record):
    assert any("standard output were no messages" in told for told in made.reports[server.name].problems)


@each([server for server in usable if server.longest_description])
def test_a_long_description_is_kept_up_to_the_bound_of_one(server: RealServer, made: Record):
    lengths = [len(tool.description) for tool in made.snapshot.of_server(server.name)]

    assert max(lengths) >= min(server.longest_description, MAX_DESCRIPTION)


@each([server for server in usable if server.hangs is not None])
def test_a_hung_server_times_out_is_ended_and_answers_again(server: RealServer, made: Record, fleet: Fleet):
    filled = as_filled(fleet, server)
    assert filled.hangs is not None

    assert_came(made.hung[server.name], filled.hangs)
    assert made.generations[server.name] == 2
    for outcome, call in zip(made.revived[server.name], filled.calls, strict=True):
        assert_came(outcome, call)


def test_no_process_of_any_of_them_is_left(made: Record):
    assert made.left == []
