"""The catalog's error tree.

CatalogError
├── ConfigError            a configuration file cannot be read or says something impossible
├── SchemaRejected         a JSON Schema is malformed, remote, or too costly to evaluate
├── SecretsUnusable        the place where secrets are kept cannot be read or written
├── ServerUnavailable      an upstream tool server cannot be started or reached
│   └── NeedsLogin         it wants a person to log in first
└── LoginFailed            a person's login to a server came to nothing

A failed *call* is not an error here: it is a value, `catalog.result.CallFailure`.
"""

from __future__ import annotations


class CatalogError(Exception):
    """Anything the environment of the catalog got wrong."""


class ConfigError(CatalogError):
    """A configuration that cannot be used.

    Attributes:
        file: path of the file, or None when the value came from elsewhere.
        line: 1-based line in that file, or None when unknown.
        key: dotted key the problem is at, or None for the whole file.
    """

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, key: str | None = None
    ) -> None:
        place = ":".join(str(part) for part in (file, line) if part is not None)
        where = ", ".join(part for part in (place, f"key {key!r}" if key else "") if part)
        super().__init__(f"{where}: {message}" if where else message)
        self.file = file
        self.line = line
        self.key = key


class SchemaRejected(CatalogError):  # noqa: N818  (a verdict on a schema, read as one)
    """A JSON Schema that is not evaluated: malformed, remote, or too costly."""


class ServerUnavailable(CatalogError):  # noqa: N818  (named as the fault it becomes)
    """An upstream that cannot be started or reached; `server` is its configured name."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(f"{server}: {message}")
        self.server = server


NEEDS_LOGIN = "needs login: skillbank login "
"""What the message of a `NeedsLogin` holds, wherever it is shown as a server's problem."""


class NeedsLogin(ServerUnavailable):
    """An upstream that wants a person to log in first, which only `skillbank login` can do."""

    def __init__(self, server: str, why: str = "it lets nobody in without a login") -> None:
        super().__init__(server, f"{NEEDS_LOGIN}{server} ({why})")


class LoginFailed(CatalogError):  # noqa: N818
    """A login that came to nothing; `server` is the configured name."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(f"{server}: login failed: {message}")
        self.server = server


class SecretsUnusable(CatalogError):  # noqa: N818
    """The keyring or the file that secrets are kept in; the message names it, never a secret."""
