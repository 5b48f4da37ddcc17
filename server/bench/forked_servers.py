"""Fresh processes of Python tool servers in milliseconds: forked from a parent that has imported them.

A benchmark that starts hundreds of processes of the same four servers would measure how long Python
imports them. A forked process is as fresh as a started one: its parent imports, and runs nothing.

Run as a script, `--parent SOCKET` is that parent, and `SOCKET SCRIPT [ARGUMENT …]` stands in a
configuration in place of a console script: it hands its pipes over, and lives as long as the process
that was forked for it. So this module imports nothing at its top that takes time.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["main", "stand_in_command"]

_LONGEST_REQUEST = 1 << 18
_NO_SERVER = 70


def stand_in_command(place: str, command: list[str]) -> list[str]:
    """Return the command that has a console script's process forked by the parent at a socket."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), place, *command]


def main(arguments: list[str]) -> int:
    """Run as the parent, or as the stand-in of one forked process; return the exit code."""
    if arguments[0] == "--parent":
        _be_parent(arguments[1])
        return 0
    return _stand_in(arguments[0], arguments[1:])


def _stand_in(place: str, command: list[str]) -> int:
    """Have a process forked that has this one's pipes, and wait until it is gone."""
    request = json.dumps({"command": command, "environment": dict(os.environ), "folder": os.getcwd()})
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as parent:
        parent.connect(place)
        socket.send_fds(parent, [f"{request}\n".encode()], [0, 1, 2])
        nothing = os.open(os.devnull, os.O_RDWR)
        for pipe in (0, 1):  # the forked process has them; held here too, their end would never be seen
            os.dup2(nothing, pipe)
        said = parent.recv(1)
    return said[0] if said else 0


def _be_parent(place: str) -> None:
    """Fork a process for every stand-in that connects, until the standard input ends."""
    from select import select

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forked processes are nobody's to wait for
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(place)
        door.listen(64)
        print("ready", flush=True)
        while select([door, sys.stdin], [], [])[0] == [door]:
            connected, _ = door.accept()
            with connected:
                _answer(connected, door)


def _answer(connected: socket.socket, door: socket.socket) -> None:
    """Import what a stand-in asks for, and fork a process that becomes it."""
    said, pipes, _, _ = socket.recv_fds(connected, _LONGEST_REQUEST, 3)
    try:
        while said and not said.endswith(b"\n"):
            said += connected.recv(_LONGEST_REQUEST)
        if not said:
            return
        request = json.loads(said)
        run = _script(request["command"][0])
        if run is None:
            connected.send(bytes([_NO_SERVER]))
        elif os.fork() == 0:
            door.close()
            _become(request, run, pipes, connected)
    finally:
        for pipe in pipes:
            os.close(pipe)


def _script(path: str) -> Callable[[], Any] | None:
    """Return the function of a console script, importing what it needs; None when there is none."""
    from importlib.metadata import entry_points

    found = list(entry_points(group="console_scripts", name=os.path.basename(path)))
    return found[0].load() if found else None


def _become(
    request: dict[str, Any], run: Callable[[], Any], pipes: list[int], connected: socket.socket
) -> None:
    """Be the server from here on; this never returns."""
    code = 1
    try:
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _end_with(connected)
        sys.argv = request["command"]
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        code = _code_of(run)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _code_of(run: Callable[[], Any]) -> int:
    """Run a server to its end, and return what its console script would have exited with."""
    try:
        code = run()
    except SystemExit as ended:
        code = ended.code
    return code if isinstance(code, int) else int(code is not None)


def _end_with(stand_in: socket.socket) -> None:
    """End this process when its stand-in is gone, as if it had been killed itself."""
    from threading import Thread

    def watch() -> None:
        stand_in.recv(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
