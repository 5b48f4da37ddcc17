"""A newcomer types the README's commands on a server of their own, in that order, and they work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from server.provisioning.demo_servers import DEMO_SERVERS

PROJECT = Path(__file__).parents[2]
NOT_TYPED = ("skillbank init", "skillbank serve")
"""What asks about the machine at hand, and what does not end by itself."""
EXPECTED = {
    "skillbank add clock": (0, "added clock: 2 tools"),
    "skillbank doctor": (0, "clock"),
    "skillbank effects list": (0, "convert_time"),
    "skillbank check": (1, "unknown_tool"),
    "skillbank run": (1, "unknown_tool"),
    "skillbank repair": (0, "tokyo_time  active"),
    "skillbank solve": (0, "verified"),
    "skillbank skills list": (0, "tokyo_time"),
    "skillbank skills run": (0, "T22:00"),
}

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        any(server.version() is None for server in DEMO_SERVERS), reason="needs skillbank[demo]"
    ),
]


def typed() -> list[str]:
    section = (PROJECT / "README.md").read_text("utf-8").split("## Your own servers")[1]
    block = re.search(r"```bash\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [line for line in block[1].splitlines() if not line.startswith(NOT_TYPED)]


def test_each_command_does_what_is_said_beside_it(tmp_path: Path):
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SKILLBANK_", "XDG_"))
    }
    environment |= {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    answered: dict[str, tuple[int, str]] = {}
    for line in typed():
        # Nobody can be asked here: what a person would say yes to is said on the command line.
        command = line.replace("add clock --", "add clock --yes --")
        done = subprocess.run(
            ["bash", "-c", command], env=environment, cwd=PROJECT, capture_output=True, text=True, check=False
        )
        name = next(name for name in EXPECTED if line.startswith(name))
        answered[name] = (done.returncode, done.stdout + done.stderr)

    assert {name: code for name, (code, _) in answered.items()} == {n: c for n, (c, _) in EXPECTED.items()}
    silent = [name for name, (_, words) in EXPECTED.items() if words not in answered[name][1]]
    assert silent == [], answered
