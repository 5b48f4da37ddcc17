"""Which configured values are secrets, so that they can be kept out of everything stored.

A variable is one when it is filled from the environment or its name says so; a header always is.
A folder or a flag that a server is given is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from catalog.config.model import Config, ServerSpec, expand
from catalog.errors import ConfigError

__all__ = ["secrets_of"]

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def secrets_of(config: Config, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secret values that servers are given; a server that cannot be expanded has none yet."""
    return frozenset(value for spec in config.servers.values() for value in _secrets(spec, environment))


def _secrets(spec: ServerSpec, environment: Mapping[str, str]) -> Iterator[str]:
    try:
        filled = expand(spec, environment)
    except ConfigError:
        # Reported when the server is started; here there is no value to protect.
        return
    for name, value in filled.env.items():
        if "${" in spec.env[name] or _SECRET_NAME.search(name):
            yield value
    for value in filled.headers.values():
        yield value
        yield value.split(" ")[-1]
