"""Two processes that curate one bank at once lose nothing, and take no step twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from skills_store.lifecycle import TRANSITIONS
from skills_store.sqlite import open_sqlite_store
from tests.skills_store.conftest import make_skill

PROGRAM = Path(__file__).with_name("curating_process.py")
ROUNDS = 40


def test_two_processes_lose_no_episode_and_take_each_step_once(tmp_path):
    store, config = tmp_path / "store.db", tmp_path / "config.json"
    config.write_text('{"mcpServers": {}}')
    kept = open_sqlite_store(store)
    kept.add_version(make_skill(tests=(), created_at=1.0), expected_head=None)
    kept.move("temperature", 1, "active", reason="approved", by="person", at=1.0)
    commands = [
        [sys.executable, str(PROGRAM), str(store), str(config), str(n), str(ROUNDS)] for n in range(2)
    ]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    answers = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], [err for _, err in answers]
    steps = [json.loads(out.splitlines()[-1]) for out, _ in answers]
    episodes = kept.episodes(999, "temperature")
    changes = kept.changes("temperature")
    assert len({episode.task for episode in episodes}) == len(episodes) == 2 * ROUNDS
    assert kept.count_trials("temperature", 1) == kept.use_counts("temperature").uses == 2 * ROUNDS
    assert Counter(step for taken in steps for step in taken) == {"restrict": 1, "suppress": 1}
    assert [change.after for change in changes] == ["proposed", "active", "context_only", "suppressed"]
    assert all((c.before, c.after, c.by) in TRANSITIONS for c in changes if c.before is not None)
    kept.close()
