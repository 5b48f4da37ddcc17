"""What trainers read, made from episodes: rows of plain JSON, experience stripped.

TRL: SFT as whole conversations (of which the assistant's turns are learned), DPO as the first turns in which
a right and a wrong run differ, GRPO as a prompt and what followed with an advantage per turn. Preference
pairs end before a tool answers: as a completion, TRL would have the answer learned too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from server.training.episode import Episode, Turn
from server.training.stripping import stripped

__all__ = [
    "FORMATS",
    "Row",
    "dpo_rows",
    "grpo_rows",
    "sft_rows",
    "sft_turn_rows",
    "verl_rows",
    "verl_sft_rows",
]

Row = dict[str, JsonValue]
_PAIRS = 4
"""Wrong runs that one right run is paired with."""


def sft_rows(episodes: Iterable[Episode]) -> list[Row]:
    """Return the conversations of right runs, each once: `{messages, tools}` and where they are from.

    All their assistant turns are learned, so an episode in which others must not be is left out.
    """
    rows: dict[str, Row] = {}
    for episode in map(stripped, episodes):
        spoken = tuple(i for i, turn in enumerate(episode.messages) if turn.role == "assistant")
        if episode.outcome.score != 1.0 or spoken != episode.trained:
            continue
        row: Row = {"messages": _chat(episode.messages), "tools": _tools(episode)}
        rows.setdefault(json.dumps(row, sort_keys=True), row | {"episode": episode.id})
    return list(rows.values())


def sft_turn_rows(episodes: Iterable[Episode]) -> list[Row]:
    """Return, of right runs that `sft_rows` leaves out, each learned turn: `{prompt, completion, tools}`."""
    rows: dict[str, Row] = {}
    for episode in map(stripped, episodes):
        spoken = tuple(i for i, turn in enumerate(episode.messages) if turn.role == "assistant")
        if episode.outcome.score != 1.0 or spoken == episode.trained:
            continue
        for index in episode.trained:
            prompt, said = _chat(episode.messages[:index]), _chat(episode.messages[index : index + 1])
            row: Row = {"prompt": prompt, "completion": said, "tools": _tools(episode)}
            rows.setdefault(json.dumps(row, sort_keys=True), row | {"episode": episode.id})
    return list(rows.values())


def dpo_rows(episodes: Iterable[Episode]) -> list[Row]:
    """Return pairs of turns after one prompt: `{prompt, chosen, rejected, tools}`, `chosen` of a right run.

    Paper: EvoFlux (preference pairs from lineages). Differs: from any two runs of one task, at their fork.
    """
    rows: dict[str, Row] = {}
    for group in _groups(map(stripped, episodes)).values():
        right = sorted((e for e in group if e.outcome.score == 1.0), key=lambda e: (len(e.messages), e.id))
        wrong = [e for e in group if e.outcome.score == 0.0]
        for one in right[:1]:
            for other in wrong[:_PAIRS]:
                if (row := _fork(one, other)) is not None:
                    key = json.dumps([row["prompt"], row["chosen"], row["rejected"]], sort_keys=True)
                    rows.setdefault(key, {**row, "episodes": [one.id, other.id]})
    return list(rows.values())


def grpo_rows(episodes: Iterable[Episode]) -> list[Row]:
    """Return runs with credit: `{prompt, completion, advantages, trained, guided, tools, group, reward}`.

    `advantages` and `trained` have one entry per message of the completion; a trainer copies them to every
    token of that message. The text after the last step has the last step's advantage.
    """
    rows: list[Row] = []
    for seen in episodes:
        episode, start = stripped(seen), stripped(seen).prompt_length
        by_message = {i: step.advantage for step in episode.steps for i in step.messages}
        if not any(value is not None for value in by_message.values()):
            continue
        kept = range(start, len(episode.messages))
        learned = [i in episode.trained and by_message.get(i) is not None for i in kept]
        rows.append(
            {
                "prompt": _chat(episode.messages[:start]),
                "completion": _chat(episode.messages[start:]),
                "advantages": [by_message.get(i) or 0.0 for i in kept],
                "trained": cast("JsonValue", learned),
                "guided": seen.guided,
                "tools": _tools(episode),
                "group": episode.group,
                "reward": episode.outcome.score,
                "episode": episode.id,
            }
        )
    return rows


def verl_rows(episodes: Iterable[Episode]) -> list[Row]:
    """Return tasks for verl's rollouts, each once; free-form objects are JSON strings.

    Parquet would give every row the fields of all others, with nulls that a model would learn.
    """
    rows: list[Row] = []
    for number, group in enumerate(_groups(map(stripped, episodes)).values()):
        episode = group[0]
        right = next((one for one in group if one.outcome.score == 1.0), None)
        truth = right.messages[-1].content if right is not None else ""
        rows.append(
            {
                "data_source": f"skillbank/{episode.family}",
                "prompt": _chat(episode.messages[: episode.prompt_length]),
                "ability": "tools",
                "reward_model": {"style": "rule", "ground_truth": truth},
                "extra_info": {
                    "index": number,
                    "split": episode.split,
                    "task": episode.task,
                    "tools": json.dumps(list(episode.tools), ensure_ascii=False),
                },
            }
        )
    return rows


def verl_sft_rows(episodes: Iterable[Episode]) -> list[Row]:
    """Return the SFT rows as verl reads them: arguments of calls and tool schemas are JSON strings."""
    rows: list[Row] = []
    for row in sft_rows(episodes):
        messages: list[JsonValue] = [
            _flat(cast("Row", one)) for one in cast("list[JsonValue]", row["messages"])
        ]
        rows.append({"messages": messages, "tools": json.dumps(row["tools"], ensure_ascii=False)})
    return rows


def _flat(message: Row) -> Row:
    calls = [cast("Row", call) for call in cast("list[JsonValue]", message.get("tool_calls") or [])]
    flat: list[JsonValue] = []
    for call in calls:
        function = cast("Row", call["function"])
        arguments = json.dumps(function["arguments"], ensure_ascii=False)
        flat.append({"type": "function", "function": {"name": function["name"], "arguments": arguments}})
    content = message.get("content")
    return {"role": message["role"], "content": content, "tool_calls": flat or None}


def _groups(episodes: Iterable[Episode]) -> dict[str, list[Episode]]:
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.group, []).append(episode)
    return groups


def _fork(right: Episode, wrong: Episode) -> Row | None:
    """Return the pair at the first turn in which two runs differ; None where it is no turn of the model."""
    same = 0
    pairs = zip(right.messages, wrong.messages, strict=False)
    for one, other in pairs:
        if one != other:
            break
        same += 1
    if same >= min(len(right.messages), len(wrong.messages)):
        return None
    if same not in right.trained or same not in wrong.trained or right.tools != wrong.tools:
        return None
    return {
        "prompt": _chat(right.messages[:same]),
        "chosen": _chat(right.messages[same : same + 1]),
        "rejected": _chat(wrong.messages[same : same + 1]),
        "tools": _tools(right),
    }


def _tools(episode: Episode) -> JsonValue:
    """Return the tools that a chat template is to tell of: none where the messages themselves do.

    A driven model calls by a JSON object in its text, and read there what it can call.
    """
    calls = any(turn.tool_calls for turn in episode.messages)
    return cast("JsonValue", list(episode.tools) if calls else [])


def _chat(turns: Sequence[Turn]) -> list[JsonValue]:
    return [_message(one) for one in turns]


def _message(turn: Turn) -> JsonValue:
    """Return a message with what chat templates want even where it is a default."""
    message: Row = {"role": turn.role, "content": turn.content}
    if turn.tool_calls:
        message["tool_calls"] = [cast("JsonValue", call.model_dump(mode="json")) for call in turn.tool_calls]
    if turn.name is not None:
        message["name"] = turn.name
    return message


FORMATS: Mapping[str, Callable[[Iterable[Episode]], list[Row]]] = {
    "sft": sft_rows,
    "sft-turns": sft_turn_rows,
    "dpo": dpo_rows,
    "grpo": grpo_rows,
}
"""Of TRL, by the name of the file."""
