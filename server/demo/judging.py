"""Whether the demo went right: every reason why not, in words."""

from __future__ import annotations

from collections.abc import Sequence

from server.demo.report import Skipped, StoryReport
from server.reports import ServerReport

__all__ = ["problems_of"]

_SERVERS_AT_LEAST = 4


def problems_of(
    servers: Sequence[ServerReport],
    stories: Sequence[StoryReport],
    skipped: Sequence[Skipped],
    *,
    is_whole: bool,
) -> tuple[str, ...]:
    """Return why a demo is not ok, empty when it is.

    A skipped story is no problem of its own, as long as enough servers took part in the others.

    Args:
        servers: those that were started.
        stories: those that were told.
        skipped: those that could not be told here.
        is_whole: whether all stories were asked for.
    """
    found = [_server_problem(server) for server in servers if server.status != "ok"]
    found += [f"{story.name}: {_story_problem(story)}" for story in stories if not story.right]
    took_part = sum(server.status == "ok" for server in servers)
    if is_whole and took_part < _SERVERS_AT_LEAST:
        found.append(f"only {took_part} tool servers took part, {_SERVERS_AT_LEAST} are needed")
    if not stories:
        found += [f"{story.name} was skipped: {story.reason}" for story in skipped]
    return tuple(found)


def _server_problem(server: ServerReport) -> str:
    return f"server {server.name}: {'; '.join(server.problems) or server.status}"


def _story_problem(story: StoryReport) -> str:
    if story.status != "verified":
        left = "; ".join(fault.message for fault in story.left)
        return f"the repair ended {story.status}: {left}"
    if story.skill_state != "active":
        return f"the skill is {story.skill_state or 'not compiled'}: {story.skill_reason}"
    return story.called.problem if story.called else "no client called it"
