"""Which configured values are secrets, so that they can be kept out of everything stored.

A variable is one when it is filled from the environment, comes from a file of variables, or its
name says so; a header and the answer to a hidden input always are. A folder or a flag that a server
is given is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from catalog.config.model import Config, ServerSpec, expand
from catalog.errors import ConfigError, SecretsUnusable

__all__ = ["carries_credentials", "secrets_of"]

_OURS = re.compile(r"\$\{(input:[^}]*|userHome|pathSeparator|workspaceFolder(Basename)?)\}")
"""Placeholders that hold nothing of the operator's: inputs are answered by each principal."""
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def carries_credentials(spec: ServerSpec) -> bool:
    """Return whether a server is started or reached with what may be a secret of the operator's.

    What is filled from the environment or a file of variables, a variable whose name says so, any
    header, and a client secret count; the answers to inputs and logins are each principal's own.
    """
    texts = (spec.command, spec.cwd, spec.url, *spec.args, *spec.env.values(), *spec.headers.values())
    filled = any("${" in _OURS.sub("", text) for text in texts if text is not None)
    named = any(_SECRET_NAME.search(name) and _OURS.sub("", value) for name, value in spec.env.items())
    fixed = any(_OURS.sub("", value).strip(" ") not in ("", "Bearer") for value in spec.headers.values())
    named = named or any(_SECRET_NAME.search(text) for text in spec.args)
    held = spec.url is not None and urlsplit(spec.url).username is not None
    return (
        filled or named or fixed or held or spec.env_file is not None or spec.oauth.client_secret is not None
    )


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
