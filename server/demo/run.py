"""The order of the demo: servers, stories, a client of our own server, how to go on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import anyio.to_thread

from server.bank import Bank
from server.demo.calling import call_as_client
from server.demo.connecting import connect_client, serve_command
from server.demo.judging import problems_of
from server.demo.mending import mend_story
from server.demo.narration import Narrator, open_narrator
from server.demo.report import Called, DemoReport, StoryReport
from server.demo.staging import Stage, open_folder, prepare_stage
from server.progress import Progress
from server.reports import ServerReport
from server.wiring import open_bank

__all__ = ["run_demo", "tell_demo"]


async def run_demo(as_json: bool = False, keep: Path | None = None, story: str | None = None) -> int:
    """Run the demo on this process's streams and return the exit code: 0 when everything was right.

    Args:
        as_json: print one JSON object on stdout, at the end.
        keep: an empty folder for everything that is made; None: a temporary one.
        story: name of the one story to tell; None: all.

    Raises:
        DemoServersMissing: the tool servers are not installed.
        DemoRefused: the folder or the story cannot be used.
    """
    narrator = open_narrator(sys.stdout, sys.stderr, as_json=as_json)
    report = await tell_demo(narrator, keep, story)
    return 0 if report.ok else 1


async def tell_demo(narrator: Narrator, keep: Path | None = None, only: str | None = None) -> DemoReport:
    """Run the demo, tell it, and return what it came to.

    Raises:
        DemoServersMissing: the tool servers are not installed.
        DemoRefused: the folder or the story cannot be used.
    """
    started = perf_counter()
    with open_folder(keep) as folder:
        stage = await anyio.to_thread.run_sync(prepare_stage, folder, only)
        async with open_bank(stage.settings) as bank:
            servers = await _started(stage, bank, narrator)
            mended = [await _mended(stage, index, bank, narrator) for index in range(len(stage.stories))]
        tools, stories = await _called(stage, mended, narrator)
        problems = problems_of(servers, stories, stage.skipped, is_whole=only is None)
        report = DemoReport(
            servers=servers,
            stories=stories,
            skipped=stage.skipped,
            tools=tools,
            connect=connect_client(stage.settings if keep else None),
            problems=problems,
            seconds=perf_counter() - started,
            ok=not problems,
        )
    narrator.tell_end(report)
    return report


async def _started(stage: Stage, bank: Bank, narrator: Narrator) -> tuple[ServerReport, ...]:
    with narrator.progress() as listener:
        listener(Progress("connect", "starting the tool servers"))
        servers = (await bank.doctor()).servers
    narrator.tell_servers(servers, stage.skipped)
    return servers


async def _mended(stage: Stage, index: int, bank: Bank, narrator: Narrator) -> StoryReport:
    story = stage.stories[index]
    faults = (await bank.check(story.broken, connect=True)).faults
    narrator.tell_broken(story, faults)
    with narrator.progress() as listener:
        report = await mend_story(story, faults, bank, listener)
    narrator.tell_mended(report)
    return report


async def _called(
    stage: Stage, mended: Sequence[StoryReport], narrator: Narrator
) -> tuple[tuple[str, ...], tuple[StoryReport, ...]]:
    """Call every skill as a client of our own server, and put the answers into the reports."""
    command = serve_command(stage.settings)
    with narrator.progress() as listener:
        listener(Progress("serve", "connecting to skillbank serve as a client would"))
        session = await call_as_client(command, stage.stories, stage.log_path, listener)
    stories = tuple(_with_call(report, session.called[report.name]) for report in mended)
    narrator.tell_calls(command, session.tools, stories)
    return session.tools, stories


def _with_call(report: StoryReport, called: Called) -> StoryReport:
    return report.model_copy(update={"called": called})
