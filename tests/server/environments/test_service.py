"""Environments over tool servers, as clients of both wires meet them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from talking import Serve, open_session
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from catalog.process_tree import descendants, is_running
from server.environments.definitions import Definition, of_task_file
from server.environments.errors import BadRequest
from server.environments.instances import open_instances
from server.environments.limits import Limits
from server.settings import read_settings

pytestmark = pytest.mark.anyio


async def post(url: str, body: Any, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=30) as client:
        return await client.post(url, json=body, headers=headers)


async def test_the_right_answer_is_worth_1_and_a_wrong_one_0(served: Serve) -> None:
    async with served() as url, open_session(url) as session:
        rewards: list[float] = []
        for answer in ({"total": 42.5}, {"total": 42}, "42.5"):
            begun = await session.ask("reset", task_id="total")
            assert begun["data"]["reward"] is None
            assert begun["data"]["observation"]["instruction"].startswith("What is the total?")
            assert "42.5" not in json.dumps(begun)
            seen = await session.call("price")
            assert seen["observation"]["result"]["data"] == {"total": 42.5}
            ended = await session.submit(answer)
            assert (ended["done"], ended["terminated"], ended["truncated"]) == (True, True, False)
            rewards.append(ended["reward"])
    assert rewards == [1.0, 0.0, 0.0]


async def test_what_only_a_judge_can_tell_is_unscored_and_not_0(served: Serve) -> None:
    async with served() as url, open_session(url) as session:
        await session.ask("reset", task_id="volatile")
        assert (await session.submit("noon"))["reward"] is None


async def test_each_episode_and_each_instance_has_a_world_of_its_own(served: Serve) -> None:
    async with served() as url, open_session(url) as one, open_session(f"{url}/shop") as other:
        await one.ask("reset", task_id="counted")
        await other.ask("reset", task_id="counted")
        found = [(await one.call("count"))["observation"]["result"]["data"] for _ in range(2)]
        found.append((await other.call("count"))["observation"]["result"]["data"])
        await one.ask("reset", task_id="counted")
        found.append((await one.call("count"))["observation"]["result"]["data"])
    first = found[0]
    assert found == [first, found[1], first, first]
    assert found[1] != first


async def test_a_call_that_nobody_consented_to_is_denied(served: Serve) -> None:
    async with served() as url, open_session(url) as session:
        await session.ask("reset", task_id="total")
        error = (await session.call("send"))["observation"]["error"]
        assert error["error_type"] == "denied"
        assert "skillbank effects set shop/send --allow" in error["message"]
        unknown = (await session.call("sendd"))["observation"]["error"]
        assert unknown["error_type"] == "tool_not_found"


async def test_a_killed_worker_fails_its_own_instance_takes_its_servers_along_and_is_replaced(
    shop: Definition,
) -> None:
    async with open_instances({"shop": shop}) as pool:
        one, other = await pool.create("shop"), await pool.create("shop")
        await one.reset("total")
        await other.reset("total")
        assert one.pid is not None
        started = [one.pid, *descendants(one.pid)]
        assert len(started) > 1
        os.kill(one.pid, signal.SIGKILL)
        with pytest.raises(Exception, match=r"killed by signal 9.*reset starts another"):
            await one.step({"type": "call_tool", "tool_name": "price", "arguments": {}})
        assert [pid for pid in started if is_running(pid)] == []
        seen = await other.step({"type": "call_tool", "tool_name": "price", "arguments": {}})
        assert seen.observation["error"] is None
        await one.reset("total")
        again = await one.step({"type": "submit", "answer": {"total": 42.5}})
        assert again.reward == 1.0


async def test_nothing_runs_on_when_the_service_ends(shop: Definition) -> None:
    async with open_instances({"shop": shop}) as pool:
        instance = await pool.create("shop")
        await instance.reset("total")
        assert instance.pid is not None
        started = [instance.pid, *descendants(instance.pid)]
    assert [pid for pid in started if is_running(pid)] == []


async def test_an_instance_that_nobody_uses_is_ended_and_says_so(shop: Definition) -> None:
    async with open_instances({"shop": shop}, Limits(idle_seconds=100)) as pool:
        used, idle = await pool.create("shop"), await pool.create("shop")
        await idle.reset("total")
        assert idle.pid is not None
        used.last_used += 50
        assert await pool.reap(lambda: idle.last_used + 101) == [idle.id]
        assert not is_running(idle.pid)
        assert pool.find(used.id) is used
        with pytest.raises(BadRequest, match="idle for over 100 s"):
            pool.find(idle.id)


async def test_there_are_no_more_instances_than_allowed_and_one_closed_makes_room(
    served: Serve,
) -> None:
    async with served(instances=1) as url:
        async with open_session(url) as session:
            await session.ask("reset", task_id="total")
            async with connect(url.replace("http", "ws") + "/ws") as second:
                refused = json.loads(await second.recv())
            assert refused["data"]["code"] == "AT_CAPACITY"
            refused = await post(f"{url}/agentevolver/create", {"env_type": "shop", "task_id": "total"})
            assert refused.status_code == 429
            await session.ask("state")
            await session.socket.send(json.dumps({"type": "close"}))
            await session.socket.wait_closed()
        async with open_session(url) as session:
            assert (await session.ask("reset", task_id="total"))["type"] == "observation"


async def test_an_episode_over_its_steps_is_truncated(served: Serve) -> None:
    async with served(steps=2) as url, open_session(url) as session:
        await session.ask("reset", task_id="total")
        for _ in range(2):
            assert not (await session.call("price"))["done"]
        ended = await session.call("price")
        assert (ended["done"], ended["truncated"], ended["terminated"]) == (True, True, False)
        assert ended["reward"] == 0.0
        after = await session.ask("step", type="submit", answer={"total": 42.5})
        assert after["data"]["code"] == "EPISODE_ENDED"


async def test_credit_and_reference_are_told_to_the_trainer_alone(served: Serve) -> None:
    async with served() as url, open_session(url) as session:
        await session.ask("reset", task_id="total", attribution=True, group="g")
        await session.call("send")
        seen = await session.call("price")
        assert "attribution" not in seen
        ended = await session.submit({"total": 42.5})
        assert [one["label"] for one in ended["attribution"]] == ["bad", "good"]
        state = (await session.ask("state"))["data"]
        assert state["reference"]["answer"] == {"total": 42.5}
        await session.ask("reset", task_id="total", group="g")
        await session.submit({"total": 1})
        await session.ask("reset", task_id="total", group="g")
        await session.call("price")
        await session.submit({"total": 1})
        async with httpx2.AsyncClient() as client:
            group = (await client.get(f"{url}/groups/g")).json()[0]
            assert (await client.get(f"{url}/groups/none")).status_code == 404
    assert [episode["reward"] for episode in group["episodes"]] == [1.0, 0.0, 0.0]
    good, none, wrong = (episode["advantages"] for episode in group["episodes"])
    assert none == []
    assert good[-1] > 0 > wrong[-1]


MALFORMED = {
    "broken": ("{", "INVALID_JSON"),
    "a list": ("[1]", "INVALID_JSON"),
    "deep": ("[" * 100_000, "INVALID_JSON"),
    "unknown": ('{"type": "dance"}', "UNKNOWN_TYPE"),
    "data": ('{"type": "reset", "data": []}', "VALIDATION_ERROR"),
    "seed": ('{"type": "reset", "data": {"seed": "one"}}', "VALIDATION_ERROR"),
    "task": ('{"type": "reset", "data": {"task_id": "none"}}', "NOT_FOUND"),
    "too early": ('{"type": "step", "data": {"type": "submit"}}', "NOT_RESET"),
    "rpc": ('{"type": "mcp", "data": {"params": 3}}', "VALIDATION_ERROR"),
}


async def test_malformed_messages_are_told_of_and_the_session_goes_on(served: Serve) -> None:
    """In one session: each begins a process of its own, and every message must leave it as it was."""
    async with served() as url, open_session(url) as session:
        for began in (False, True):
            for name, (text, code) in MALFORMED.items():
                if began and name == "too early":
                    continue
                said = (await session.raw(text))["data"]
                found = said["error"]["data"]["code"] if name == "rpc" else said["code"]
                assert (name, found) == (name, code)
                state = (await session.ask("state"))["data"]
                assert (name, state.get("task_id")) == (name, "total" if began else None)
            begun = await session.ask("reset", task_id="total")
            assert begun["type"] == "observation"
            bad = await session.ask("step", type="fly")
            assert bad["data"]["code"] == "INVALID_ACTION"


async def test_a_message_over_the_bound_ends_that_session_alone(served: Serve) -> None:
    async with served(message_bytes=20_000) as url, open_session(url) as other:
        async with open_session(url) as session:
            with pytest.raises(ConnectionClosedError, match="1009"):
                await session.raw(json.dumps({"type": "step", "data": {"x": "a" * 30_000}}))
        over = await post(f"{url}/reset", {"task_id": "a" * 30_000})
        assert (over.status_code, over.json()["code"]) == (413, "TOO_LARGE")
        assert (await other.ask("reset", task_id="total"))["type"] == "observation"


async def test_other_names_and_other_pages_are_turned_away(served: Serve) -> None:
    async with served() as url:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            refused = await post(f"{url}/reset", {}, **headers)
            assert refused.status_code in (403, 421)
        with pytest.raises(InvalidStatus, match="403"):
            async with connect(url.replace("http", "ws") + "/ws", origin="http://evil.example"):  # pyright: ignore
                pass


async def test_an_unknown_route_says_what_there_is(served: Serve) -> None:
    async with served() as url, httpx2.AsyncClient() as client:
        missing = await client.get(f"{url}/nowhere")
        assert (missing.status_code, missing.json()["code"]) == (404, "NO_ROUTE")
        assert (await client.get(f"{url}/reset")).status_code == 405
        assert (await client.get(f"{url}/none/splits")).json()["code"] == "NOT_FOUND"


async def test_single_requests_share_a_session_and_name_others(served: Serve) -> None:
    async with served() as url, httpx2.AsyncClient(timeout=30) as client:
        assert (await client.get(f"{url}/state")).json() == {"episode_id": None, "step_count": 0}
        early = await post(f"{url}/step", {"action": {"type": "list_tools"}})
        assert (early.status_code, early.json()["code"]) == (409, "NOT_RESET")
        begun = (await post(f"{url}/reset", {"task_id": "total", "episode_id": "e1"})).json()
        step = {"action": {"type": "submit", "answer": {"total": 42.5}}, "session_id": begun["session_id"]}
        assert (await post(f"{url}/step", step)).json()["reward"] == 1.0
        assert (await client.get(f"{url}/state")).json()["episode_id"] == "e1"


async def test_an_agent_sees_tools_alone_over_mcp(served: Serve) -> None:
    def rpc(method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}

    async with served() as url:
        made = (await post(f"{url}/mcp", rpc("openenv/session/create", task_id="total"))).json()
        session = made["result"]["session_id"]
        listed = (await post(f"{url}/mcp", rpc("tools/list", session_id=session))).json()
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["price", "count", "send"]
        call = rpc("tools/call", session_id=session, name="price", arguments={})
        called = (await post(f"{url}/mcp", call)).json()
        assert called["id"] == 7
        assert called["result"]["structuredContent"] == {"total": 42.5}
        assert "reward" not in json.dumps(called)
        closed = (await post(f"{url}/mcp", rpc("openenv/session/close", session_id=session))).json()
        assert closed["result"]["closed"]
        gone = (await post(f"{url}/mcp", rpc("tools/list", session_id=session))).json()
        assert gone["error"]["data"]["code"] == "NO_INSTANCE"
        unknown = (await post(f"{url}/mcp", rpc("reset"))).json()
        assert unknown["error"]["code"] == -32601


async def test_task_routes_name_tasks_without_what_their_checks_stand_on(served: Serve) -> None:
    async with served() as url, httpx2.AsyncClient() as client:
        assert (await client.get(f"{url}/list_environments")).json() == ["shop"]
        splits = (await client.get(f"{url}/shop/splits")).json()
        assert splits == [{"name": "train", "type": "train", "num_tasks": 3}]
        assert (await post(f"{url}/shop/num_tasks", {"split": "train"})).json() == {"num_tasks": 3}
        task = (await post(f"{url}/shop/task", {"split": "train", "index": 0})).json()["task"]
        assert set(task) == {"id", "task", "servers", "inputs"}
        ranged = (await post(f"{url}/shop/task_range", {"start": 1, "stop": 3})).json()["tasks"]
        assert [one["id"] for one in ranged] == ["volatile", "counted"]
        beyond = await post(f"{url}/shop/task", {"index": 3})
        assert (beyond.status_code, beyond.json()["code"]) == (422, "VALIDATION_ERROR")


async def test_agentevolvers_six_routes_play_a_task(served: Serve) -> None:
    async with served() as url:

        async def ask(route: str, **body: Any) -> Any:
            answer = await post(f"{url}/agentevolver/{route}", body)
            assert answer.status_code == 200, answer.text
            return answer.json()["data"]

        assert await ask("get_env_profile", env_type="shop") == ["total", "volatile", "counted"]
        made = await ask("create", env_type="shop", task_id="total", instance_id="i1")
        assert [message["role"] for message in made["state"]] == ["system", "user"]
        assert "price" in made["state"][0]["content"]
        calls = json.dumps([{"tool_name": "price", "tool_args": {}}])
        message = {"role": "assistant", "content": f"Look:\n```json\n{calls}\n```"}
        stepped = await ask("step", instance_id="i1", messages=message)
        assert json.loads(stepped["state"][0]["content"])[0]["result"] == {"total": 42.5}
        assert not stepped["is_terminated"]
        assert await ask("evaluate", instance_id="i1") == 0.0
        final = {"role": "assistant", "content": '{"total": 42.5}'}
        ended = await ask("step", instance_id="i1", messages=final)
        assert (ended["is_terminated"], ended["reward"]) == (True, 1.0)
        assert await ask("evaluate", instance_id="i1") == 1.0
        assert (await ask("get_info", instance_id="i1"))["task_id"] == "total"
        assert await ask("release", instance_id="i1") is None
        gone = await post(f"{url}/agentevolver/evaluate", {"instance_id": "i1"})
        assert (gone.status_code, gone.json()["success"]) == (404, False)


async def test_a_server_that_does_not_start_fails_the_reset_with_its_name(tmp_path: Path) -> None:
    config, tasks = tmp_path / "config.json", tmp_path / "tasks.jsonl"
    config.write_text(json.dumps({"mcpServers": {"shop": {"command": "/nonexistent"}}}))
    task = {"id": "t", "task": "?", "servers": ["shop"], "inputs": {}, "workflow": {"nodes": []}}
    tasks.write_text(json.dumps(task))
    definition = of_task_file("shop", tasks, read_settings(config=config, store=tmp_path / "s.db"))
    async with open_instances({"shop": definition}) as pool:
        instance = await pool.create("shop")
        with anyio.fail_after(30), pytest.raises(Exception, match=r"shop: .*cannot start"):
            await instance.reset()


def test_a_task_of_a_server_that_is_not_configured_is_named(tmp_path: Path, shop: Definition) -> None:
    del shop  # it wrote the file
    config = tmp_path / "none.json"
    config.write_text('{"mcpServers": {}}')
    with pytest.raises(BadRequest, match="'total' needs server 'shop'"):
        of_task_file("shop", tmp_path / "tasks.jsonl", read_settings(config=config, store=tmp_path / "s.db"))


async def test_a_client_that_leaves_while_idle_ones_are_ended_troubles_nobody(
    shop: Definition,
) -> None:
    async with open_instances({"shop": shop}, Limits(idle_seconds=100)) as pool:
        idle = [await pool.create("shop") for _ in range(3)]
        for one in idle:
            await one.reset("total")
        pids = [one.pid for one in idle]
        async with anyio.create_task_group() as group:
            group.start_soon(pool.reap, lambda: idle[0].last_used + 1000)
            await anyio.lowlevel.checkpoint()
            await pool.let_go(idle[2].id).wait()
        assert len(pool) == 0
        assert [pid for pid in pids if pid is not None and is_running(pid)] == []


async def test_what_asked_for_an_end_may_go_and_the_instance_still_ends(shop: Definition) -> None:
    async with open_instances({"shop": shop}) as pool:
        instance = await pool.create("shop")
        await instance.reset("total")
        assert instance.pid is not None
        started = [instance.pid, *descendants(instance.pid)]
        async with anyio.create_task_group() as group:
            group.start_soon(pool.release, instance.id)
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    assert [pid for pid in started if is_running(pid)] == []
