"""Standard streams of a serving process: nobody else's, and never in the way of the event loop."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import anyio
from server.surface.streams import private_streams

async def main():
    with private_streams() as (lines, answers):
        print("stray", flush=True)
        assert sys.stdin.read() == ""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answers.write, "x" * 1_000_000 + "\\n")
            await anyio.sleep(0)
            print("still here", file=sys.stderr, flush=True)
        async for line in lines:
            await answers.write(line.upper() + "\\n")
    print("given back", flush=True)

anyio.run(main)
"""
COMMAND = [sys.executable, "-c", PROGRAM]


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_an_answer_nobody_reads_yet_holds_up_nothing_and_arrives_whole(kind: str):
    ours, theirs = socket.socketpair() if kind == "socket" else (None, None)
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=theirs or subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert [process.stderr.readline() for _ in range(2)] == ["stray\n", "still here\n"]
        if theirs is not None:
            theirs.close()
        process.stdin.write("one\ntwo\n")
        process.stdin.close()
        read = process.stdout or ours.makefile("r")
        assert read.read() == "x" * 1_000_000 + "\nONE\nTWO\ngiven back\n"
        read.close()
        assert process.stderr.read() == ""
    if ours is not None:
        ours.close()
    assert process.returncode == 0


def test_a_reader_that_is_gone_ends_it():
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert b"BrokenPipeError" in process.stderr.read()
    assert process.returncode == 1
