"""Servers of local models: real processes that stand in for llama-server, started, shared, killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from server.backends.errors import BackendMisconfigured, BackendUnavailable
from server.models.errors import NotFetched, PortTaken, ServerFailed
from server.models.leases import Lease, create_lease, end_orphans, running_servers
from server.models.serving import local_serving, open_local_model, open_shared_server
from server.models.speed import Speed, measure_speed

PROJECT = Path(__file__).parents[3]

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def in_time():
    with anyio.fail_after(60):
        yield


async def ask(lease: Lease, path: str, key: str | None = None) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {lease.key if key is None else key}"}
    async with httpx2.AsyncClient(trust_env=False) as client:
        return await client.get(lease.url.removesuffix("/v1") + path, headers=headers)


async def said_by(lease: Lease) -> Any:
    return (await ask(lease, "/props")).json()


async def until_gone(pid: int) -> None:
    """Wait for the end of a process that is no child of ours."""
    while Path(f"/proc/{pid}").exists():
        await anyio.sleep(0.01)


async def test_a_model_is_served_for_as_long_as_it_is_used(serving_host):
    async with open_local_model(serving_host, "tiny-alias", slots=3) as lease:
        assert (lease.model, lease.slots, lease.context_tokens, lease.shared) == ("tiny", 3, 512, False)
        assert (await ask(lease, "/health")).status_code == 200
        assert running_servers(serving_host.shelf.servers) == [lease]
    with pytest.raises(httpx2.ConnectError):
        await ask(lease, "/health")
    assert list(serving_host.shelf.servers.iterdir()) == []


async def test_nobody_without_the_key_is_answered_and_the_key_is_in_no_argument(serving_host):
    async with open_local_model(serving_host, "tiny") as lease:
        assert (await ask(lease, "/props", key="guessed")).status_code == 401
        said = await said_by(lease)
        assert lease.key not in " ".join(said["arguments"])
        assert lease.key not in repr(serving_host)


async def test_only_their_user_can_read_leases(serving_host):
    async with open_local_model(serving_host, "tiny"):
        folder = serving_host.shelf.servers
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


async def test_its_variables_are_what_it_computes_with_and_no_keys_of_others(serving_host):
    theirs = {**serving_host.environment, "LLAMA_ARG_N_PREDICT": "1", "ANTHROPIC_API_KEY": "secret"}
    async with open_local_model(replace(serving_host, environment=theirs), "tiny") as lease:
        variables = (await said_by(lease))["variables"]
    assert variables["OMP_WAIT_POLICY"] == "passive"
    assert variables["LLAMA_ARG_KV_UNIFIED"] == "1"
    assert "LLAMA_ARG_N_PREDICT" not in variables  # a person's settings for another use of llama-server
    assert "ANTHROPIC_API_KEY" not in variables


async def test_what_is_raised_while_it_is_used_comes_out_as_it_is(serving_host):
    with pytest.raises(LookupError, match="of the caller"):
        async with open_local_model(serving_host, "tiny"):
            raise LookupError("of the caller")


async def test_a_server_that_is_kept_running_is_found_and_left_running(serving_host):
    async with open_shared_server(serving_host, "tiny") as kept:
        for _ in range(2):
            async with open_local_model(serving_host, "tiny") as lease:
                assert lease == kept.lease
        assert (await ask(kept.lease, "/health")).status_code == 200


async def test_a_kept_server_of_other_weights_with_the_same_name_is_not_taken_for_it(serving_host, tmp_path):
    for folder in ("mine", "theirs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.gguf").write_bytes(folder.encode())
    mine, theirs = (str(tmp_path / folder / "model.gguf") for folder in ("mine", "theirs"))
    async with open_shared_server(serving_host, theirs), open_local_model(serving_host, mine) as lease:
        assert (lease.path, lease.shared) == (mine, False)


async def test_a_private_server_is_not_used_by_others(serving_host):
    async with (
        open_local_model(serving_host, "tiny") as first,
        open_local_model(serving_host, "tiny") as second,
    ):
        assert first.url != second.url
        assert first.key != second.key


async def test_a_model_is_kept_running_once(serving_host):
    async with open_shared_server(serving_host, "tiny") as kept:
        with pytest.raises(ServerFailed, match=f"served already at {kept.lease.url}"):
            async with open_shared_server(serving_host, "tiny"):
                pass


async def test_a_taken_port_is_said_to_be(serving_host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} cannot be used: .*leave --port out"):
            async with open_shared_server(serving_host, "tiny", port=port):
                pass


async def test_it_answers_on_the_port_that_was_asked_for(serving_host):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with open_shared_server(serving_host, "tiny", port=port) as kept:
        assert kept.lease.url == f"http://127.0.0.1:{port}/v1"


async def test_a_server_that_does_not_start_is_quoted(serving_host, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"damaged")
    with pytest.raises(ServerFailed, match=r"exit code 1; its last words: error loading model: not a GGUF"):
        async with open_local_model(serving_host, str(tmp_path / "bad.gguf")):
            pass
    assert list(serving_host.shelf.servers.iterdir()) == []


@pytest.mark.usefixtures("serving_host")
async def test_without_a_runtime_the_remedy_is_a_command(host):
    with pytest.raises(NotFetched, match="get it with skillbank model fetch tiny"):
        async with open_local_model(host, "tiny"):
            pass


async def test_a_killed_server_is_started_again_at_the_same_address_with_the_same_key(serving_host):
    async with open_local_model(serving_host, "tiny") as lease:
        os.kill(lease.pid, signal.SIGKILL)
        again = await _another(serving_host, lease)
        assert (again.url, again.key) == (lease.url, lease.key)
        assert (await ask(again, "/props")).status_code == 200
    assert running_servers(serving_host.shelf.servers) == []


async def test_a_kept_server_that_ends_is_replaced_for_whoever_uses_it(serving_host):
    async with (
        open_shared_server(serving_host, "tiny") as kept,
        open_local_model(serving_host, "tiny") as lease,
    ):
        os.kill(kept.lease.pid, signal.SIGKILL)
        assert await kept.wait() == "llama-server was ended by signal 9"
        again = await _another(serving_host, lease)
        assert (again.url, again.shared) == (lease.url, False)


async def _another(host, lease: Lease) -> Lease:
    """Return the server that takes the place of one that ended."""
    while True:
        for running in running_servers(host.shelf.servers):
            if running.pid != lease.pid:
                return running
        await anyio.sleep(0.01)


async def test_a_backend_is_served_with_address_and_key(serving_host):
    async with local_serving(serving_host)("tiny") as served:
        assert (await ask(served, "/props")).status_code == 200


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("huge", BackendMisconfigured, "local:huge: no model is called 'huge'. There are tiny."),
        ("nowhere.gguf", BackendMisconfigured, "nowhere.gguf: there is no such file of weights"),
        ("damaged", BackendUnavailable, "its last words: error loading model"),
    ],
)
async def test_a_backend_is_told_whether_asking_again_can_help(name, error, said, serving_host, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"damaged")
    asked = str(tmp_path / "bad.gguf") if name == "damaged" else name
    with pytest.raises(error) as refused:
        async with local_serving(serving_host)(asked):
            pass
    assert said in str(refused.value)


OWNER = """
import os, sys, anyio
from pathlib import Path
from server.models.runtime import Host
from server.models.serving import open_local_model
from server.models.shelf import Shelf

async def main():
    host = Host(Shelf(Path(sys.argv[1]), ()), Path(sys.argv[2]), dict(os.environ))
    async with open_local_model(host, sys.argv[3]) as lease:
        print(lease.pid, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends it")
async def test_nothing_is_left_of_a_server_whose_skillbank_was_killed(serving_host, tiny):
    weights = serving_host.shelf.path_of(tiny)
    shelf, program = serving_host.shelf.folder, serving_host.named_runtime
    owner = await anyio.open_process(
        [sys.executable, "-c", OWNER, str(shelf), str(program), str(weights)],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
    )
    async with owner:
        assert owner.stdout is not None
        pid = int(await owner.stdout.receive())
        assert [lease.pid for lease in running_servers(serving_host.shelf.servers)] == [pid]
        owner.kill()
        await owner.wait()
        await until_gone(pid)
    assert running_servers(serving_host.shelf.servers) == []
    assert list(serving_host.shelf.servers.iterdir()) == []


async def test_a_private_server_without_an_owner_is_ended_by_the_next_start(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    file = create_lease(tmp_path, "tiny")
    orphan = await anyio.open_process(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(file.file.fileno(),)
    )
    async with orphan:
        file.publish(_lease(pid=orphan.pid, owner_pid=gone.pid, shared=False))
        end_orphans(tmp_path)
        assert await orphan.wait() == -signal.SIGKILL
    assert running_servers(tmp_path) == []


@pytest.mark.parametrize("owner", ["alive", "gone and it is shared"])
async def test_no_other_server_is_ended(owner, tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    is_alive = owner == "alive"
    file = create_lease(tmp_path, "tiny")
    server = await anyio.open_process(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(file.file.fileno(),)
    )
    async with server:
        lease = _lease(pid=server.pid, owner_pid=os.getpid() if is_alive else gone.pid, shared=not is_alive)
        file.publish(lease)
        end_orphans(tmp_path)
        assert running_servers(tmp_path) == [lease]
        server.kill()


async def test_a_server_that_is_still_starting_is_nobodys_yet(tmp_path):
    file = create_lease(tmp_path, "tiny")
    assert running_servers(tmp_path) == []
    assert file.path.exists()
    file.close()
    assert list(tmp_path.iterdir()) == []


async def test_speed_is_what_the_server_says_it_took(serving_host):
    async with open_local_model(serving_host, "tiny") as lease:
        assert await measure_speed(lease.url, lease.key) == Speed(prompt=80.0, generation=9.0)
        with pytest.raises(ServerFailed, match=r"its speed cannot be measured: .*401"):
            await measure_speed(lease.url, "guessed")


def _lease(*, pid: int, owner_pid: int, shared: bool) -> Lease:
    return Lease(
        model="tiny",
        path="tiny.gguf",
        url="http://127.0.0.1:9/v1",
        key="k",
        slots=1,
        context_tokens=512,
        pid=pid,
        owner_pid=owner_pid,
        shared=shared,
    )
