"""TextWorld games as a world: made from a seed, played by one tool that types a command.

The reward is the game's: its score over the most it can have. The walkthrough is the reference.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from typing import Any

__all__ = ["open_world"]

_QUESTS = {f"quest-{length}": length for length in range(1, 6)}
_TOOL: dict[str, Any] = {
    "name": "type_command",
    "description": "Type a command of the game, such as: look, inventory, go east, take key.",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}


def open_world() -> TextWorldGames:
    """Return the world, no game made."""
    return TextWorldGames()


class TextWorldGames:
    """One game at a time."""

    def __init__(self) -> None:
        self._library: Any = importlib.import_module("textworld")
        self._folder = tempfile.TemporaryDirectory(prefix="skillbank-game-")
        self._game: Any = None
        self._score = 0.0
        self._most = 1.0
        self._won = False

    def tasks(self) -> dict[str, Any]:
        """Return the ids: how many commands a quest needs. The seed says which game."""
        return {"splits": {"train": list(_QUESTS)}}

    def reset(self, task: dict[str, Any], seed: int | None) -> dict[str, Any]:
        """Make the game of a seed, the same for the same, and begin it."""
        if task["id"] not in _QUESTS:
            raise LookupError(f"no task {task['id']!r}; there are {', '.join(_QUESTS)}")
        length = _QUESTS[task["id"]]
        options = self._library.GameOptions()
        options.seeds = 0 if seed is None else seed
        options.nb_rooms, options.nb_objects, options.quest_length = length + 1, length + 3, length
        options.path = os.path.join(self._folder.name, "game.z8")
        options.force_recompile = True
        path, _ = self._library.make(options)
        wanted = self._library.EnvInfos(
            objective=True, policy_commands=True, won=True, lost=True, max_score=True, score=True
        )
        if self._game is not None:
            self._game.close()
        self._game = self._library.start(path, request_infos=wanted)
        state = self._game.reset()
        self._score, self._most, self._won = 0.0, float(state.max_score or 1), False
        walkthrough: list[str] = list(state.policy_commands)
        return {
            "instruction": f"{state.objective}\n\n{_room(state.feedback)}",
            "tools": [_TOOL],
            "reference": {
                "turns": [
                    [{"tool_name": "type_command", "arguments": {"command": each}} for each in walkthrough]
                ]
            },
        }

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Type a command."""
        command = arguments.get("command")
        if tool != "type_command" or not isinstance(command, str) or "\n" in command:
            said = "the one tool is type_command, with 'command': one line of text"
            content = [{"type": "text", "text": said}]
            return {"content": content, "structured": None, "data": said, "is_error": True,
                    "error_type": "invalid_args"}  # fmt: skip
        state, score, is_over = self._game.step(command)
        self._score, self._won = float(score), bool(state.won)
        said = str(state.feedback).strip()
        answer: dict[str, Any] = {"content": [{"type": "text", "text": said}], "structured": None,
                                  "data": said, "is_error": False}  # fmt: skip
        return {**answer, "done": True, **self.score()} if is_over else answer

    def submit(self, answer: Any) -> dict[str, Any]:  # noqa: ANN401
        """Give up, or say that it is done."""
        del answer
        return {"done": True, **self.score()}

    def score(self) -> dict[str, Any]:
        """Return the game's score over the most it can have."""
        detail = f"{self._score:g} of {self._most:g}{', won' if self._won else ''}"
        return {
            "reward": 1.0 if self._won else max(0.0, min(1.0, self._score / self._most)),
            "detail": detail,
        }


def _room(feedback: str) -> str:
    """Return what the game says first, without its banner."""
    at = feedback.find("-= ")
    return feedback[at:].strip() if at >= 0 else feedback.strip()
