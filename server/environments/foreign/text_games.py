"""TextWorld games as a world: made from a seed, played by one tool that types a command.

The reward is the game's: its score over the most it can have. The walkthrough is the reference. A folder
of games, where one is given, keeps what was made: making one takes seconds.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import tempfile
from typing import Any

__all__ = ["open_world"]

_QUESTS = {f"quest-{length}": length for length in range(1, 6)}
_HOUSEHOLD: dict[str, tuple[str, dict[str, Any]]] = {
    "supper": ("tw-simple", {"rewards": "sparse", "goal": "detailed", "test": False}),
    "cooking": (
        "tw-cooking",
        {"recipe": 1, "take": 1, "go": 1, "open": False, "cook": True, "cut": False, "drop": False,
         "split": "train"},
    ),
    "coin": ("tw-coin_collector", {"level": 3}),
}  # fmt: skip
"""The library's own games of one house or walk each, by task: which, and its settings beside the seed."""
_TOOL: dict[str, Any] = {
    "name": "type_command",
    "description": "Type a command of the game, such as: look, inventory, go east, take key.",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}


def open_world(folder: str | None = None) -> TextWorldGames:
    """Return the world, no game made.

    Args:
        folder: made games are kept there and found again; None: in one that ends with the world.
    """
    return TextWorldGames(folder)


class TextWorldGames:
    """One game at a time."""

    def __init__(self, folder: str | None = None) -> None:
        self._library: Any = importlib.import_module("textworld")
        self._made = tempfile.TemporaryDirectory(prefix="skillbank-game-")
        self._folder = folder
        self._game: Any = None
        self._score = 0.0
        self._most = 1.0
        self._won = False

    def tasks(self) -> dict[str, Any]:
        """Return the ids: how many commands a quest needs, or which house. The seed says which game."""
        return {"splits": {"train": list(_QUESTS), "household": list(_HOUSEHOLD)}, "tools": [_TOOL]}

    def reset(self, task: dict[str, Any], seed: int | None) -> dict[str, Any]:
        """Make the game of a seed, the same for the same, and begin it."""
        known = (*_QUESTS, *_HOUSEHOLD)
        if task["id"] not in known:
            raise LookupError(f"no task {task['id']!r}; there are {', '.join(known)}")
        path = self._game_of(task["id"], 0 if seed is None else seed)
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

    def _game_of(self, task: str, seed: int) -> str:
        """Return the compiled game's path, made unless the folder has it."""
        if self._folder is None:
            return self._compiled(task, seed, os.path.join(self._made.name, "game.z8"))
        settings = json.dumps([self._library.__version__, _QUESTS.get(task), _HOUSEHOLD.get(task)])
        name = f"{task}-{seed}-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
        kept = os.path.join(self._folder, f"{name}.z8")
        if not os.path.exists(kept):
            os.makedirs(self._folder, exist_ok=True)
            made = self._compiled(task, seed, os.path.join(self._made.name, f"{name}.z8"))
            # The game itself comes last: whoever finds it finds what is read beside it too.
            for ending in (".json", ".z8"):
                with open(made.removesuffix(".z8") + ending, "rb") as source:
                    _write_whole(os.path.join(self._folder, name + ending), source.read())
        return kept

    def _compiled(self, task: str, seed: int, path: str) -> str:
        options = self._library.GameOptions()
        options.seeds, options.path, options.force_recompile = seed, path, True
        if (length := _QUESTS.get(task)) is not None:
            options.nb_rooms, options.nb_objects, options.quest_length = length + 1, length + 3, length
            return str(self._library.make(options)[0])
        challenge, settings = _HOUSEHOLD[task]
        made = importlib.import_module("textworld.challenges").CHALLENGES[challenge][1]
        if challenge == "tw-cooking":
            settings = {**settings, "recipe_seed": seed}
        return str(self._library.generator.compile_game(made(settings, options), options))

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


def _write_whole(path: str, data: bytes) -> None:
    """Write a file that others see whole or not at all."""
    partial = f"{path}.{os.getpid()}"
    with open(partial, "wb") as file:
        file.write(data)
    os.replace(partial, path)


def _room(feedback: str) -> str:
    """Return what the game says first, without its banner."""
    at = feedback.find("-= ")
    return feedback[at:].strip() if at >= 0 else feedback.strip()
