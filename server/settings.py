"""Where the configuration and the store are: the one reader of the environment.

An option of the command line wins over a variable, a variable over the user's folders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from catalog.config import Config, ModelSpec, load_config, parse_model
from catalog.errors import ConfigError
from catalog.secret_store import FileSecrets, KeptSecrets, SecretStore
from server.backends.access import KEY_VARIABLES

__all__ = [
    "CACHE_VARIABLE",
    "CONFIG_VARIABLE",
    "MODEL_VARIABLE",
    "RUNTIME_VARIABLE",
    "STORE_VARIABLE",
    "Settings",
    "read_settings",
]

CONFIG_VARIABLE = "SKILLBANK_CONFIG"
"""Path of the configuration, when `--config` does not say."""
STORE_VARIABLE = "SKILLBANK_STORE"
"""Path of the store, when `--store` does not say."""
CACHE_VARIABLE = "SKILLBANK_CACHE"
"""Folder of what can be fetched again: local models and their runtime."""
RUNTIME_VARIABLE = "SKILLBANK_LLAMA_SERVER"
"""The llama-server that runs local models, instead of the one that is found."""
MODEL_VARIABLE = "SKILLBANK_MODEL"
"""The model for every role, when `--model` does not say; wins over the configuration."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one run of the program stands on."""

    config_path: Path
    store_path: Path
    config_is_named: bool = True
    """Whether a person named the configuration: then a missing file is an error, not empty."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables that placeholders in the configuration may name and that servers inherit."""
    cache_path: Path = field(default_factory=lambda: platformdirs.user_cache_path("skillbank"))
    """Folder of local models and their runtime."""
    principal: str | None = None
    """On whose behalf, None: the operator, whose store this is."""
    runtime_path: Path | None = None
    """The llama-server to use, None: the one that is found."""

    @property
    def model(self) -> ModelSpec | None:
        """The model for every role, None where the configuration says.

        Raises:
            ConfigError: the variable names no model.
        """
        text = self.environment.get(MODEL_VARIABLE, "").strip()
        try:
            return parse_model(text) if text else None
        except ValueError as error:
            raise ConfigError(str(error), key=MODEL_VARIABLE) from error

    @property
    def model_keys(self) -> tuple[str, ...]:
        """Keys of model providers: never stored, never shown."""
        named = (self.environment.get(variable, "").strip() for variable in KEY_VARIABLES.values())
        return tuple(key for key in named if key)

    def open_secrets(self) -> SecretStore:
        """Return where secrets are kept: the keyring, else a file beside the store ending in `.secrets`."""
        path = self.store_path.with_suffix(".secrets")
        # A keyring is the operator's: what belongs to another is only ever in a file of its own.
        return KeptSecrets.beside(path) if self.principal is None else FileSecrets(path)

    def load_config(self) -> Config:
        """Return the configuration; empty where nobody named one and the default is not there.

        Raises:
            ConfigError: names file, line and key.
        """
        return load_config(self.config_path, missing_ok=not self.config_is_named)


def read_settings(
    *, config: Path | None = None, store: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of this process.

    Args:
        config: from the command line, None: not given.
        store: from the command line, None: not given.
        environment: None: that of the process.
    """
    variables = dict(os.environ if environment is None else environment)
    named = config or _path(variables.get(CONFIG_VARIABLE))
    kept = (
        store or _path(variables.get(STORE_VARIABLE)) or platformdirs.user_data_path("skillbank") / "store.db"
    ).expanduser()
    return Settings(
        config_path=(named or platformdirs.user_config_path("skillbank") / "config.json").expanduser(),
        store_path=kept,
        principal=kept.parent.name if kept.parent.parent.suffix == ".principals" else None,
        config_is_named=named is not None,
        environment=variables,
        cache_path=(
            _path(variables.get(CACHE_VARIABLE)) or platformdirs.user_cache_path("skillbank")
        ).expanduser(),
        runtime_path=_path(variables.get(RUNTIME_VARIABLE)),
    )


def _path(value: str | None) -> Path | None:
    return Path(value) if value else None
