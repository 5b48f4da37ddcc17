"""Changes of the configuration while the bank is open: servers come and go, effect classes are set.

The file is written first, so that what is offered is what the next start will offer too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from catalog.config import (
    Config,
    ConfigDocument,
    load_config,
    name_problem,
    parse_servers,
    save_config,
    with_effects,
    with_server,
    without_profile,
    without_server,
)
from catalog.effects import Effect
from catalog.errors import ConfigError
from server.bank.context import Context
from server.bank.upstreams import relaying
from server.bank.upstreams.health import list_servers
from server.reports import ServerReport

__all__ = ["Administration"]


class Administration:
    """What an operator may change while clients are served.

    Args:
        context: returns the bank's context as it is now.
        change: puts another in its place.
        environment: fills the placeholders of servers that are added.
    """

    def __init__(
        self,
        context: Callable[[], Context],
        change: Callable[[Context], None],
        environment: Mapping[str, str],
    ) -> None:
        self._context, self._change, self._environment = context, change, environment

    async def add_server(self, name: str, command: Sequence[str], url: str | None) -> ServerReport:
        """Add a server, start it, and return how it is.

        Raises:
            ConfigError: the name cannot be used or is taken, it would start skillbank itself, or the
                file cannot be rewritten; nothing was changed.
        """
        config = self._context().config
        problem = name_problem(name) or (
            f"server {name!r} is there already" if name in config.servers else None
        )
        if problem is not None:
            raise ConfigError(problem, key=name)
        entry: dict[str, JsonValue] = {"url": url} if url else {"command": command[0], "args": [*command[1:]]}
        document = ConfigDocument(self._context().config_path, {"mcpServers": {name: entry}}, lines={})
        if parse_servers(document)[name].is_ourselves:
            raise ConfigError("this would start skillbank itself, which would start itself again", key=name)
        changed = self._written(lambda document: with_server(document, name, entry))
        secrets = next((spec.secrets for spec in config.servers.values()), None)
        spec = replace(changed.servers[name], secrets=secrets)
        self._context().connections.offer(spec, self._environment, changed.idle_seconds)
        self._take(changed, {**config.servers, name: spec})
        await self._context().snapshot([name])
        return next(report for report in list_servers(self._context()) if report.name == name)

    async def remove_server(self, name: str) -> None:
        """Take a server out of the configuration and end it.

        Raises:
            ConfigError: there is none of this name, or the file cannot be rewritten.
        """
        config = self._context().config
        if name not in config.servers:
            known = ", ".join(sorted(config.servers)) or "none"
            raise ConfigError(f"no server {name!r} is configured; there are: {known}", key=name)
        changed = self._written(lambda document: without_profile(without_server(document, name), name))
        self._context().connections.withdraw(name)
        self._take(changed, {other: spec for other, spec in config.servers.items() if other != name})

    async def set_effect(self, server: str, pattern: str, effect: Effect) -> None:
        """Set the effect class of the tools of a server that fit a pattern.

        Raises:
            ConfigError: there is no such server, or the file cannot be rewritten.
        """
        config = self._context().config
        if server not in config.servers:
            known = ", ".join(sorted(config.servers)) or "none"
            raise ConfigError(f"no server {server!r} is configured; there are: {known}", key=server)
        changed = self._written(lambda document: with_effects(document, server, {pattern: effect}))
        self._take(changed, config.servers)
        relaying.recheck_effects(server, pattern, self._context())

    def _written(self, edit: Callable[[Mapping[str, JsonValue]], dict[str, JsonValue]]) -> Config:
        path = self._context().config_path
        save_config(edit(load_config(path, missing_ok=True).document), path)
        return load_config(path)

    def _take(self, changed: Config, servers: Mapping[str, object]) -> None:
        context = self._context()
        specs = {name: context.config.servers.get(name) or servers[name] for name in servers}
        context.connections.effects = changed.effects
        self._change(replace(context, config=replace(changed, servers=specs)))
