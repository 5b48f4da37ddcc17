"""Where secrets are kept: a file of its owner alone, a keyring where there is a real one."""

from __future__ import annotations

import json
import multiprocessing
import sys

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.backends.null import Keyring as NullKeyring
from keyring.errors import PasswordDeleteError, PasswordSetError

from catalog.errors import SecretsUnusable
from catalog.secret_store import FileSecrets, KeptSecrets, MemorySecrets, NoticedSecrets


class Vault(KeyringBackend):
    """A keyring that encrypts, as far as anyone can tell."""

    priority = 5.0
    name = "vault"

    def __init__(self, full: bool = False):
        super().__init__()
        self.full = full
        self.held = {}

    def get_password(self, service, username):
        return self.held.get((service, username))

    def set_password(self, service, username, password):
        if self.full:
            raise PasswordSetError("full")
        self.held[service, username] = password

    def delete_password(self, service, username):
        if (service, username) not in self.held:
            raise PasswordDeleteError("not there")
        del self.held[service, username]


class PlainVault(Vault):
    priority = 0.5


class Chain(Vault):
    priority = 10.0

    def __init__(self, *backends):
        super().__init__()
        self.backends = list(backends)


def stores(tmp_path):
    return {
        "memory": MemorySecrets(),
        "file": FileSecrets(tmp_path / "deep" / "secrets"),
        "keyring": KeptSecrets(FileSecrets(tmp_path / "secrets"), Vault),
        "full keyring": KeptSecrets(FileSecrets(tmp_path / "full"), lambda: Vault(full=True)),
        "no keyring": KeptSecrets(FileSecrets(tmp_path / "none"), lambda: None),
        "noticed": NoticedSecrets(MemorySecrets(), lambda _name, _secret: None),
    }


@pytest.mark.parametrize("kind", ["memory", "file", "keyring", "full keyring", "no keyring", "noticed"])
class TestEveryStore:
    def test_keeps_what_was_put_last_until_it_is_removed(self, kind, tmp_path):
        store = stores(tmp_path)[kind]
        assert store.get("a") is None
        assert store.remove("a") is False
        store.put("a", "one")
        store.put("b", "zwei ü")
        store.put("a", "three")
        assert (store.get("a"), store.get("b")) == ("three", "zwei ü")
        assert store.remove("a") is True
        assert (store.get("a"), store.get("b")) == (None, "zwei ü")

    def test_one_at_a_time_claims_a_secret(self, kind, tmp_path):
        store = stores(tmp_path)[kind]
        let_go = store.claim("a")
        assert store.claim("a") is None
        store.put("a", "one")
        store.claim("b")()
        let_go()
        store.claim("a")()

    def test_says_where_and_shows_nothing(self, kind, tmp_path):
        store = stores(tmp_path)[kind]
        store.put("a", "hush-hush")
        assert store.place
        assert "hush" not in repr(store)


def test_a_file_is_its_owners_alone_and_changed_whole(tmp_path):
    store = FileSecrets(tmp_path / "secrets")
    store.put("a", "one")
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secrets", "secrets.lock"]


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ("{}", 0o644, "can be read by others: chmod 600"),
        ("no json", 0o600, "cannot be read"),
        ("[]", 0o600, "holds no secrets"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused_and_left_alone(tmp_path, content, mode, message):
    path = tmp_path / "secrets"
    path.write_text(content)
    path.chmod(mode)
    for use in (lambda s: s.get("a"), lambda s: s.put("a", "b"), lambda s: s.remove("a")):
        with pytest.raises(SecretsUnusable, match=message):
            use(FileSecrets(path))
    assert path.read_text() == content


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SecretsUnusable, match="cannot be written"):
        FileSecrets(tmp_path / "file" / "secrets").put("a", "b")


def _put(path, name):
    for turn in range(20):
        FileSecrets(path).put(f"{name}{turn}", name)


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "secrets"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_put, args=(path, name)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(json.loads(path.read_text())) == 60


def test_a_keyring_takes_the_secret_and_the_file_stays_away(tmp_path):
    vault = Vault()
    store = KeptSecrets(FileSecrets(tmp_path / "secrets"), lambda: vault)
    store.put("a", "one")
    assert vault.held == {("skillbank", "a"): "one"}
    assert list(tmp_path.iterdir()) == []
    assert store.place == "the keyring (vault)"


def test_a_secret_moves_to_the_keyring_once_it_takes_it(tmp_path):
    vault, file = Vault(full=True), FileSecrets(tmp_path / "secrets")
    store = KeptSecrets(file, lambda: vault)
    store.put("a", "one")
    assert file.get("a") == "one"
    vault.full = False
    store.put("a", "two")
    assert (file.get("a"), store.get("a")) == (None, "two")


@pytest.mark.parametrize(
    ("chosen", "counts"),
    [
        (Vault(), True),
        (NullKeyring(), False),
        (NoKeyring(), False),
        (PlainVault(), False),
        (Chain(PlainVault(), NullKeyring()), False),
        (Chain(Vault(), PlainVault()), True),
    ],
    ids=["real", "null", "none", "plain text", "a chain of unreal ones", "a chain with a real one"],
)
def test_only_a_keyring_that_encrypts_counts(chosen, counts, tmp_path):
    before = keyring.get_keyring()
    keyring.set_keyring(chosen)
    try:
        store = KeptSecrets.beside(tmp_path / "secrets")
        store.put("a", "one")
        assert (tmp_path / "secrets").exists() is not counts
    finally:
        keyring.set_keyring(before)


def test_without_the_library_the_file_takes_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    store = KeptSecrets.beside(tmp_path / "secrets")
    store.put("a", "one")
    assert store.place == str(tmp_path / "secrets")


def test_every_secret_that_passes_is_noticed():
    seen = []
    store = NoticedSecrets(MemorySecrets({"a": "one"}), lambda *told: seen.append(told))
    store.get("a")
    store.get("b")
    store.put("b", "two")
    assert seen == [("a", "one"), ("b", "two")]
