"""The reference tasks on the real servers: each is right, on its own inputs and on held-out ones, twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.config import load_config
from catalog.connections import open_connections
from catalog.effects import Activity
from server.bench.repair_bench import demo_config
from server.bench.tasks import reference_tasks
from server.execution.consent import NoConsent
from server.execution.episode import Episode
from server.execution.run import execute_workflow
from server.provisioning.demo_files import build_fixtures
from server.provisioning.demo_servers import DEMO_SERVERS
from server.provisioning.task_file import place_fixtures
from server.verification import Checks, verify
from skills_store.workflow.check import check_workflow

pytestmark = [
    pytest.mark.live,
    pytest.mark.anyio,
    pytest.mark.skipif(
        any(server.version() is None for server in DEMO_SERVERS), reason="needs skillbank[demo]"
    ),
]


async def test_every_reference_passes_all_its_assertions_twice(tmp_path: Path):
    fixtures = tmp_path / "fixtures"
    fixtures.mkdir()
    build_fixtures(fixtures)
    tasks = [place_fixtures(task, fixtures) for task in reference_tasks()]
    config = load_config(demo_config(tmp_path, tasks))
    failed: list[str] = []
    async with open_connections(config) as connections:
        snapshot = await connections.snapshot()
        for task in tasks * 2:
            workflow = task.reference
            failed += [f"{task.id}: {f.message}" for f in check_workflow(workflow, snapshot)]
            asked = [(task.inputs, task.assertions)]
            asked += [(held.inputs, held.assertions) for held in task.held_out]
            for inputs, assertions in asked:
                episode = Episode(connections, config.effects, snapshot, NoConsent())
                episode.set_plan(workflow)
                async with episode.candidate(Activity.FIRST_RUN) as caller:
                    run = await execute_workflow(workflow, inputs, caller, snapshot=snapshot)
                verdict = verify(run, workflow, inputs, Checks(assertions))
                if not verdict.is_verified:
                    failed.append(f"{task.id}: {[fault.message for fault in verdict.faults]}")

    assert failed == []
