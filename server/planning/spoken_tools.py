"""What the words of a plan can mean: which tool a name is, whatever spelling it came in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.tools import Tool, ToolId
from server.planning.view import World

__all__ = ["Vocabulary"]


@dataclass(frozen=True)
class Vocabulary:
    """What the words of a plan can mean: the tools by label, the world, the outputs that are wanted."""

    world: World
    by_label: Mapping[str, Tool]
    wanted: tuple[str, ...] = ()
    """Names of the outputs the caller will look at; empty: one output `result`."""

    def tool(self, said: str) -> ToolId:
        """Return the tool that is meant; one that is unknown is kept as it was said."""
        name = re.sub(r"\(.*\)$", "", said.strip(), flags=re.DOTALL)
        if name in self.by_label:
            return self.by_label[name].id
        parts = [part for part in re.split(r"::|__|[./:]", name) if part]
        known = {(i.server.casefold(), i.tool.casefold()): i for i in self.world.snapshot.tools}
        for cut in range(1, len(parts)):
            for joint in (".", "_", "-", "/"):
                pair = (joint.join(parts[:cut]).casefold(), joint.join(parts[cut:]).casefold())
                if pair in known:
                    return known[pair]
        for said_name in (name, "".join(parts[-1:])):
            bare = [i for pair, i in known.items() if pair[1] == said_name.casefold()]
            if len(bare) == 1:
                return bare[0]
        server, tool = (parts[0], ".".join(parts[1:])) if len(parts) > 1 else ("unknown", name or "unnamed")
        return ToolId(server, tool)
