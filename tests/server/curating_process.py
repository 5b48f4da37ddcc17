"""One of several processes that curate one bank at once: run by `test_curating_processes` as a program.

Arguments: store, configuration, number of this process, rounds. Prints what it did as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio

from server.bank.curation.curating import curate_skill
from server.settings import Settings
from server.wiring import open_bank
from skills_store.episodes import TaskEpisode
from skills_store.utility import Use

NAME = "temperature"


async def main(store: str, config: str, number: int, rounds: int) -> None:
    steps: list[str] = []
    async with open_bank(Settings(Path(config), Path(store))) as bank:
        kept = bank.context.store
        for round_ in range(rounds):
            withheld = (round_ + number) % 2 == 0
            kept.record_episode(
                TaskEpisode(
                    f"task {number} {round_}",
                    "direct",
                    "right" if withheld else "wrong",
                    bank.context.clock(),
                    skill=NAME,
                    version=1,
                    arm="withheld" if withheld else "guided",
                    share=0.5,
                )
            )
            kept.record_use(Use(NAME, 1, "direct", withheld, False, bank.context.clock()))
            steps += [step.step for step in await curate_skill(NAME, bank.context) if step.step != "audit"]
    print(json.dumps(steps))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
