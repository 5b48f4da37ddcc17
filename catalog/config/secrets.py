"""Which configured values are secrets, so that they can be kept out of everything stored.

A variable is one when it is filled from the environment, comes from a file of variables, or its
name says so; a header and the answer to a hidden input always are. A folder or a flag that a server
is given is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from catalog.config.model import Config, ServerSpec, expand
from catalog.errors import ConfigError, SecretsUnusable

__all__ = ["secrets_of"]

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def secrets_of(config: Config, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secret values that servers are given; a server that cannot be expanded has none yet."""
    return frozenset(value for spec in config.servers.values() for value in _secrets(spec, environment))


def _secrets(spec: ServerSpec, environment: Mapping[str, str]) -> Iterator[str]:
    try:
        filled = expand(spec, environment)
    except (ConfigError, SecretsUnusable):
        # Reported when the server is started; here there is no value to protect.
        return
    for name, value in filled.env.items():
        written = spec.env.get(name)
        if written is None or "${" in written or _SECRET_NAME.search(name):
            yield value
    if filled.oauth.client_secret is not None:
        yield filled.oauth.client_secret
    for name in spec.inputs_named:
        asked = spec.inputs[name]
        answer = None if spec.secrets is None or not asked.password else spec.secrets.get(asked.key)
        if answer is not None:
            yield answer
    for value in filled.headers.values():
        yield value
        yield value.split(" ")[-1]
