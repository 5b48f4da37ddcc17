"""Where the configuration and the store are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.errors import ConfigError
from server.settings import CONFIG_VARIABLE, STORE_VARIABLE, read_settings


@pytest.mark.parametrize(
    ("option", "variable", "expected"),
    [
        pytest.param("a.json", "b.json", "a.json", id="an option wins over the variable"),
        pytest.param(None, "b.json", "b.json", id="the variable wins over the user's folder"),
        pytest.param("a.json", "", "a.json", id="an empty variable says nothing"),
    ],
)
def test_the_configuration_is_where_the_strongest_voice_says(option, variable, expected):
    settings = read_settings(config=option and Path(option), environment={CONFIG_VARIABLE: variable})
    assert settings.config_path == Path(expected)
    assert settings.config_is_named


@pytest.mark.parametrize(
    ("option", "variable", "expected"),
    [
        pytest.param("a.db", "b.db", "a.db", id="an option wins over the variable"),
        pytest.param(None, "b.db", "b.db", id="the variable wins over the user's folder"),
    ],
)
def test_the_store_is_where_the_strongest_voice_says(option, variable, expected):
    settings = read_settings(store=option and Path(option), environment={STORE_VARIABLE: variable})
    assert settings.store_path == Path(expected)


def test_secrets_are_kept_beside_the_store(tmp_path):
    secrets = read_settings(store=tmp_path / "a.db", environment={}).open_secrets()
    secrets.put("a", "one")
    assert secrets.place == str(tmp_path / "a.secrets")
    assert (tmp_path / "a.secrets").exists()


def test_without_a_voice_both_are_in_the_users_folders():
    settings = read_settings(environment={})
    assert settings.config_path.parts[-2:] == ("skillbank", "config.json")
    assert settings.store_path.parts[-2:] == ("skillbank", "store.db")
    assert not settings.config_is_named


def test_a_tilde_is_the_home_folder():
    settings = read_settings(config=Path("~/x.json"), environment={STORE_VARIABLE: "~/y.db"})
    assert settings.config_path == Path.home() / "x.json"
    assert settings.store_path == Path.home() / "y.db"


def test_a_missing_file_that_somebody_named_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.json: cannot be read: No such file"):
        read_settings(config=tmp_path / "nowhere.json", environment={}).load_config()


def test_a_missing_default_file_is_an_empty_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    assert read_settings().load_config().servers == {}


def test_settings_do_not_show_the_environment():
    assert "hush" not in repr(read_settings(environment={"TOKEN": "hush"}))
