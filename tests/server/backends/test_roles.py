"""Which model plays which role, when it is opened, and what each kind needs to be usable."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from catalog.config import ModelSpec, parse_model
from catalog.errors import ConfigError
from server.backends.backend import Message, Request
from server.backends.errors import BackendMisconfigured, BackendUnavailable, SamplingUnsupported
from server.backends.examining import examine_models
from server.backends.roles import no_models, open_models, with_backend
from server.backends.scripted import ScriptedBackend
from server.settings import read_settings
from server.wiring import open_bank
from tests.server.backends.providers.anthropic_api import AnthropicApi
from tests.server.backends.providers.local_servers import LocalServer
from tests.server.backends.providers.loopback import RIGHT_KEY, Say, served

pytestmark = pytest.mark.anyio


def specs(**named: str) -> dict[str, ModelSpec]:
    return {role: parse_model(text) for role, text in named.items()}


@dataclass(frozen=True)
class Running:
    url: str
    key: str | None = "of-this-run"


class Shelf:
    """Serves local models, and keeps which were started and ended."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.server = LocalServer(Say.one("Hello"), key="of-this-run", kind="llama.cpp")

    @asynccontextmanager
    async def serving(self, name: str) -> AsyncGenerator[Running]:
        if name == "unknown":
            raise BackendMisconfigured("local:unknown: not here: skillbank model fetch unknown")
        self.events.append(f"start {name}")
        async with served(self.server.app) as root:
            yield Running(f"{root}/v1")
        self.events.append(f"end {name}")


async def test_each_role_has_its_model_and_the_default_the_rest():
    async with open_models(specs(default="none", judge="sampling", planner="local:small"), {}) as models:
        assert str(models.spec("planner")) == "local:small"
        assert str(models.spec("judge")) == "sampling"
        assert await models.backend("editor") is None


async def test_without_a_configured_model_every_role_is_played_by_none():
    assert [await no_models().backend(role) for role in ("planner", "editor", "judge", "explorer")] == [
        None
    ] * 4


async def test_a_choice_for_one_run_plays_every_role():
    async with open_models(specs(planner="local:small", default="anthropic:m"), {}) as models:
        chosen = models.choosing(parse_model("none"))
        assert await chosen.backend("planner") is None
        assert models.choosing(None) is models
        assert str(models.spec("planner")) == "local:small"


async def test_a_local_model_is_started_once_when_first_needed_and_ended_with_the_bank():
    shelf = Shelf()
    async with open_models(specs(default="local:small"), {}, serving=shelf.serving) as models:
        assert shelf.events == []
        planner, judge = await models.backend("planner"), await models.backend("judge")
        assert planner is judge
        assert (planner.name, planner.context_tokens) == ("local:small", 4096)
        assert (await planner.complete(Request((Message("user", "Hi"),)))).text == "Hello"
        assert shelf.events == ["start small"]
    assert shelf.events == ["start small", "end small"]


async def test_a_local_model_that_is_not_there_is_told_by_its_keeper_and_can_be_asked_for_again():
    shelf = Shelf()
    async with open_models(specs(default="local:unknown"), {}, serving=shelf.serving) as models:
        for _ in range(2):
            with pytest.raises(BackendMisconfigured, match="skillbank model fetch unknown"):
                await models.backend("planner")


async def test_an_error_of_whoever_uses_the_models_comes_out_as_it_is():
    with pytest.raises(LookupError, match="mine"):
        async with open_models({}, {}):
            raise LookupError("mine")


@pytest.mark.parametrize(
    ("text", "variable"), [("anthropic:m", "ANTHROPIC_API_KEY"), ("openai:m", "OPENAI_API_KEY")]
)
async def test_a_hosted_model_without_a_key_names_the_variable(text: str, variable: str):
    async with open_models(specs(default=text), {}) as models:
        with pytest.raises(BackendMisconfigured, match=f"set {variable} in the environment"):
            await models.backend("planner")


async def test_sampling_without_a_client_says_what_to_do():
    async with open_models(specs(default="sampling"), {}) as models:
        with pytest.raises(SamplingUnsupported, match="set a model of your own"):
            await models.backend("planner")


async def test_a_server_that_is_down_is_found_out_before_anything_is_planned():
    async with open_models(specs(default="openai-compatible:http://127.0.0.1:9/v1#m"), {}) as models:
        with pytest.raises(BackendUnavailable, match="is it running"):
            await models.backend("planner")


async def test_a_double_plays_every_role():
    backend = ScriptedBackend(["a"])
    assert await with_backend(backend).backend("judge") is backend


async def test_models_are_looked_at_once_each_with_the_roles_they_play(tmp_path: Path):
    shelf = Shelf()
    shelf.server.obeys = ("json_schema",)
    async with served(AnthropicApi().app) as root:
        environment = {"ANTHROPIC_API_KEY": RIGHT_KEY, "ANTHROPIC_BASE_URL": root}
        configured = specs(
            default="local:small", judge="anthropic:claude-opus-5-5", explorer="openai:gpt", editor="sampling"
        )
        async with open_models(
            configured, environment, serving=shelf.serving, memory=tmp_path / "m.json"
        ) as models:
            looked = await examine_models(models)
    assert [(m.roles, m.model, m.usable, m.offers, m.context_tokens) for m in looked] == [
        (("planner",), "local:small", True, "schema: response_format json_schema (llama.cpp)", 4096),
        (
            ("editor",),
            "sampling",
            True,
            "the model of the MCP client, where it lends it; answers are validated only",
            None,
        ),
        (("judge",), "anthropic:claude-opus-5-5", True, "schema: output_config json_schema", 200_000),
        (("explorer",), "openai:gpt", False, "", None),
    ]
    assert looked[-1].problem == "there is no key: set OPENAI_API_KEY in the environment"
    assert "local:small#small" in (tmp_path / "m.json").read_text()


def test_a_variable_names_the_model_and_a_wrong_one_is_refused_by_name():
    assert str(read_settings(environment={"SKILLBANK_MODEL": "local:small"}).model) == "local:small"
    assert read_settings(environment={}).model is None
    with pytest.raises(ConfigError, match="key 'SKILLBANK_MODEL': 'gpt' names no model"):
        read_settings(environment={"SKILLBANK_MODEL": "gpt"}).model  # noqa: B018


async def test_an_open_bank_takes_keys_of_models_out_of_everything_it_keeps(tmp_path: Path):
    config = tmp_path / "config.json"
    config.write_text('{"mcpServers": {}}')
    environment = {"ANTHROPIC_API_KEY": "key-of-anthropic", "SKILLBANK_API_KEY": "key-of-the-house"}
    settings = read_settings(config=config, store=tmp_path / "store.db", environment=environment)
    async with open_bank(settings) as bank:
        kept = bank.context.redact({"said": "key-of-anthropic and key-of-the-house"})
    assert kept == {"said": "[redacted] and [redacted]"}


def test_keys_of_models_are_known_as_secrets_and_shown_nowhere():
    keys = {"ANTHROPIC_API_KEY": "a-secret", "OPENAI_API_KEY": " b-secret ", "SKILLBANK_API_KEY": ""}
    settings = read_settings(environment=keys)
    assert settings.model_keys == ("a-secret", "b-secret")
    assert "secret" not in repr(settings)
