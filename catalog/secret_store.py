"""Where secrets may be kept: the keyring of the operating system, else a file of its owner alone.

Kept are answers to the inputs of a configuration and the tokens of servers that were logged in to.
Only a keyring that encrypts counts. What a secret is used for belongs to whoever puts it here.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final, Protocol, cast

from catalog.errors import SecretsUnusable
from catalog.whole_file import write_whole

__all__ = ["FileSecrets", "KeptSecrets", "Keyring", "MemorySecrets", "NoticedSecrets", "SecretStore"]

_SERVICE: Final = "skillbank"
_ENCRYPTS: Final = 1.0
"""Priority from which the keyring library recommends a backend; plain text and none lie below."""
_LONGEST_IN_WINDOWS: Final = 1_200
"""Characters that the credential manager of Windows takes."""


LetGo = Callable[[], None]


class SecretStore(Protocol):
    """Keeps secrets by name, across processes. Methods raise `SecretsUnusable`."""

    @property
    def place(self) -> str:
        """Where they are kept, for a person."""
        ...

    def get(self, name: str) -> str | None:
        """Return a secret, None where none is kept."""
        ...

    def put(self, name: str, secret: str) -> None:
        """Keep a secret in place of an earlier one."""
        ...

    def remove(self, name: str) -> bool:
        """Forget a secret; return whether there was one."""
        ...

    def claim(self, name: str) -> LetGo | None:
        """Claim a secret that is about to be replaced, None while another has it, in any process."""
        ...


class Keyring(Protocol):
    """What is needed of a backend of the keyring library."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret, None where it has none."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a secret."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Forget a secret."""
        ...


@dataclass
class MemorySecrets:
    """Keeps secrets as long as it lives: for tests, and where nothing may be left behind."""

    secrets: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    place: str = "memory"
    _claims: dict[str, Lock] = field(default_factory=dict[str, Lock], init=False, repr=False)

    def get(self, name: str) -> str | None:
        """Return a secret, None where none is kept."""
        return self.secrets.get(name)

    def put(self, name: str, secret: str) -> None:
        """Keep a secret in place of an earlier one."""
        self.secrets[name] = secret

    def remove(self, name: str) -> bool:
        """Forget a secret; return whether there was one."""
        return self.secrets.pop(name, None) is not None

    def claim(self, name: str) -> LetGo | None:
        """Claim a secret that is about to be replaced, None while another has it."""
        lock = self._claims.setdefault(name, Lock())
        return lock.release if lock.acquire(blocking=False) else None


@dataclass(frozen=True)
class FileSecrets:
    """Keeps secrets in a JSON file that only its owner can read, changed whole or not at all."""

    path: Path

    @property
    def place(self) -> str:
        """Where they are kept, for a person."""
        return str(self.path)

    def get(self, name: str) -> str | None:
        """Return a secret, None where none is kept."""
        return self._read().get(name)

    def put(self, name: str, secret: str) -> None:
        """Keep a secret in place of an earlier one."""
        with self._changing() as kept:
            kept[name] = secret

    def remove(self, name: str) -> bool:
        """Forget a secret; return whether there was one."""
        if name not in self._read():
            return False
        with self._changing() as kept:
            return kept.pop(name, None) is not None

    def claim(self, name: str) -> LetGo | None:
        """Claim a secret that is about to be replaced, None while another has it, in any process."""
        mark = hashlib.sha256(name.encode()).hexdigest()[:16]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = self.path.with_name(f"{self.path.name}.{mark}.lock").open("a")
        except OSError as error:
            raise SecretsUnusable(f"{self.path} cannot be written: {error.strerror or error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return lock.close

    def _read(self) -> dict[str, str]:
        try:
            if self.path.stat().st_mode & 0o077:
                raise SecretsUnusable(f"{self.path} can be read by others: chmod 600 {self.path}")
            found: object = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise SecretsUnusable(f"{self.path} cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise SecretsUnusable(f"{self.path} holds no secrets: remove it, and log in again")
        return {name: str(secret) for name, secret in cast("dict[str, object]", found).items()}

    @contextmanager
    def _changing(self) -> Generator[dict[str, str]]:
        """Yield what is kept; write it back afterwards, with other processes kept out meanwhile."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_name(f"{self.path.name}.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                kept = self._read()
                yield kept
                write_whole(self.path, json.dumps(kept, indent=1).encode())
        except OSError as error:
            raise SecretsUnusable(f"{self.path} cannot be written: {error.strerror or error}") from error


@dataclass(frozen=True)
class KeptSecrets:
    """Keeps secrets in the operating system's keyring where there is one, else in a file.

    The keyring is looked for when a secret is first needed. A keyring that refuses (locked, too
    long a secret) leaves that secret to the file.
    """

    file: FileSecrets
    find_keyring: Callable[[], Keyring | None]

    @classmethod
    def beside(cls, path: Path) -> KeptSecrets:
        """Return the secrets of this user, the file for what no keyring takes at `path`."""
        return cls(FileSecrets(path), _real_keyring)

    @cached_property
    def _keyring(self) -> Keyring | None:
        return self.find_keyring()

    @property
    def place(self) -> str:
        """Where they are kept, for a person."""
        return self.file.place if self._keyring is None else f"the keyring ({self._keyring.name})"

    def get(self, name: str) -> str | None:
        """Return a secret, None where none is kept."""
        return self._in_keyring(name) or self.file.get(name)

    def put(self, name: str, secret: str) -> None:
        """Keep a secret in place of an earlier one."""
        if self._put_in_keyring(name, secret):
            self.file.remove(name)
        else:
            self.file.put(name, secret)

    def remove(self, name: str) -> bool:
        """Forget a secret; return whether there was one."""
        in_keyring = self._in_keyring(name) is not None
        if in_keyring and self._keyring is not None:
            from keyring.errors import KeyringError

            try:
                self._keyring.delete_password(_SERVICE, name)
            except KeyringError as error:
                raise SecretsUnusable(f"{self.place} does not let go of {name!r}: {error}") from error
        return self.file.remove(name) or in_keyring

    def claim(self, name: str) -> LetGo | None:
        """Claim a secret that is about to be replaced, None while another has it, in any process."""
        return self.file.claim(name)

    def _in_keyring(self, name: str) -> str | None:
        if self._keyring is None:
            return None
        from keyring.errors import KeyringError

        try:
            return self._keyring.get_password(_SERVICE, name)
        except KeyringError as error:
            raise SecretsUnusable(f"{self.place} cannot be read: {error}") from error

    def _put_in_keyring(self, name: str, secret: str) -> bool:
        too_long = sys.platform == "win32" and len(secret) > _LONGEST_IN_WINDOWS
        if self._keyring is None or too_long:
            return False
        from keyring.errors import KeyringError

        try:
            self._keyring.set_password(_SERVICE, name, secret)
        except KeyringError:  # locked or refused: the file takes it
            return False
        return True


def _real_keyring() -> Keyring | None:
    """Return the keyring of the operating system, None where there is none that encrypts."""
    try:
        import keyring
    except ImportError:
        return None
    chosen: object = keyring.get_keyring()
    chained = cast("list[object]", getattr(chosen, "backends", [chosen]))
    real = (backend for backend in chained if float(getattr(backend, "priority", 0)) >= _ENCRYPTS)
    return cast("Keyring | None", next(real, None))


@dataclass(frozen=True)
class NoticedSecrets:
    """Tells somebody of every secret, by name, that is taken out or put in, before it can be used."""

    kept: SecretStore
    notice: Callable[[str, str], None] = field(repr=False)

    @property
    def place(self) -> str:
        """Where they are kept, for a person."""
        return self.kept.place

    def get(self, name: str) -> str | None:
        """Return a secret, None where none is kept."""
        found = self.kept.get(name)
        if found is not None:
            self.notice(name, found)
        return found

    def put(self, name: str, secret: str) -> None:
        """Keep a secret in place of an earlier one."""
        self.notice(name, secret)
        self.kept.put(name, secret)

    def remove(self, name: str) -> bool:
        """Forget a secret; return whether there was one."""
        return self.kept.remove(name)

    def claim(self, name: str) -> LetGo | None:
        """Claim a secret that is about to be replaced, None while another has it, in any process."""
        return self.kept.claim(name)
