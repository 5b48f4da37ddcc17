"""Configuration files: what each host writes, what is wrong with them, and what a rewrite keeps."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.config import (
    MODEL_FORMS,
    ModelSpec,
    OAuthSpec,
    ServerSpec,
    expand,
    load_config,
    parse_config,
    parse_profile,
    save_config,
    secrets_of,
    with_allow,
    with_effects,
    with_inputs,
    with_reset,
    with_server,
    without_profile,
)
from catalog.config.document import json_lines, parse_document
from catalog.effects import Effect, Reset
from catalog.errors import ConfigError
from catalog.labels import Label
from catalog.secret_store import MemorySecrets
from catalog.tools import ToolId


def config_of(text: str, name: str = "config.json", folder: str = "/project"):
    return parse_config(parse_document(text, Path(folder, name)))


def entry(value: dict[str, object]) -> ServerSpec:
    return config_of(json.dumps({"mcpServers": {"it": value}})).servers["it"]


FORMATS = {
    "Claude": ("c.json", '{"mcpServers": {"it": {"command": "run", "args": ["a"], "env": {"K": "v"}}}}'),
    "VS Code": (
        "mcp.json",
        '{\n// mine\n"servers": {"it": {"type": "stdio", "command": "run", "args": ["a"], '
        '"env": {"K": "v"},},},\n"inputs": [{"type": "promptString", "id": "x"}]}',
    ),
    "Codex": (
        "config.toml",
        'model = "m"\n[mcp_servers.it]\ncommand = "run"\nargs = ["a"]\n[mcp_servers.it.env]\nK = "v"\n',
    ),
}


@pytest.mark.parametrize(("name", "text"), FORMATS.values(), ids=FORMATS)
def test_each_host_format_reads_as_the_same_server(name, text):
    config = config_of(text, name)
    expected = ServerSpec("it", command="run", args=("a",), env={"K": "v"}, workspace="/project")
    assert config.servers == {"it": replace(expected, inputs=config.inputs)}
    assert list(config.inputs) == (["x"] if name == "mcp.json" else [])


@pytest.mark.parametrize(
    ("value", "transport"),
    [
        ({"command": "run"}, "stdio"),
        ({"url": "https://h/mcp"}, "http"),
        ({"url": "https://h/sse"}, "sse"),
        ({"url": "https://h/sse/"}, "sse"),
        ({"url": "https://h/ssedata"}, "http"),
        ({"url": "https://h/mcp?next=/sse"}, "http"),
        ({"type": "sse", "url": "https://h/mcp"}, "sse"),
        ({"type": "streamable-http", "url": "https://h/sse"}, "http"),
        ({"transport": "http", "url": "https://h/sse"}, "http"),
        ({"type": "stdio", "command": "run", "url": "https://h"}, "stdio"),
        ({"url": "${BASE}/mcp"}, "http"),
    ],
    ids=str,
)
def test_the_transport_is_what_the_entry_says_or_else_what_it_has(value, transport):
    spec = entry(value)
    assert spec.transport == transport
    assert (spec.command is None) == (transport != "stdio")
    assert (spec.url is None) == (transport == "stdio")


def test_codex_headers_from_the_environment_become_placeholders():
    config = config_of(
        '[mcp_servers.it]\nurl = "https://h/mcp"\nbearer_token_env_var = "TOKEN"\ntool_timeout_sec = 5\n'
        'enabled = false\nenv_vars = ["E"]\nhttp_headers = { A = "b" }\nenv_http_headers = { C = "D" }\n',
        "config.toml",
    )
    spec = config.servers["it"]
    assert spec.headers == {"Authorization": "Bearer ${TOKEN}", "A": "b", "C": "${D}"}
    assert (spec.timeout_seconds, spec.disabled) == (5, True)
    assert spec.env == {"E": "${E}"}


def test_our_own_key_is_read():
    config = config_of(
        '{"mcpServers": {"s": {"command": "run"}}, "skillbank": {"effects": {"s": {"get_*": "read"}},'
        '"reset": {"s": "process+dirs"}, "allow": {"s": ["send"]}, "learning": "propose", '
        '"models": {"default": "local:m"}}}'
    )
    assert config.effects.effect(ToolId("s", "get_x")) is Effect.READ
    assert config.effects.reset_mode("s") is Reset.PROCESS_DIRS
    assert config.effects.allows(ToolId("s", "send"))
    assert (config.learning, config.models) == (
        "propose",
        {"default": ModelSpec("local", "m")},
    )
    assert config.problems == ()


def test_labels_and_granted_flows_are_read():
    config = config_of(
        '{"mcpServers": {"files": {"command": "run"}}, "skillbank": {'
        '"labels": {"files": {"read_*": ["private", "untrusted"], "*": []}},'
        '"flows": {"files/read_*": ["mail/send", "web/*"]}}}'
    )
    table, read, mail = config.labels, ToolId("files", "read_file"), ToolId("mail", "send")
    assert table.set_for(read) == {Label.PRIVATE, Label.UNTRUSTED}
    assert table.set_for(ToolId("files", "list")) == frozenset()
    assert table.set_for(mail) is None
    assert table.grants(read, mail)
    assert not table.grants(read, ToolId("mail", "draft"))
    assert not table.grants(ToolId("files", "list"), mail)
    assert config.problems == ()


@pytest.mark.parametrize(
    ("servers", "mode"),
    [
        ((), "propose"),
        (("a",), "auto"),
        (("other",), "propose"),
        (("a", "other"), "propose"),
        (("a", "b"), "off"),
    ],
    ids=["none", "own", "of-the-bank", "stricter-of-two", "strictest"],
)
def test_what_is_learned_over_several_servers_follows_the_strictest_mode(servers, mode):
    config = config_of('{"skillbank": {"learning": {"*": "propose", "a": "auto", "b": "off"}}}')
    assert config.learning_of(servers) == mode
    assert [problem.split(",")[0] for problem in config.problems] == [
        "skillbank.learning names server 'a'",
        "skillbank.learning names server 'b'",
    ]


MALFORMED = {
    "no JSON": ('{"mcpServers": {\n"a": }}', "2: not JSON: Expecting value"),
    "empty file": ("", "1: not JSON: Expecting value"),
    "a list": ("[]", "1: the file must hold a JSON object"),
    "deep": ('{"a":' + "[" * 100_000, " nested too deeply"),
    "too deep for lines": ('{"a":' + "[" * 700 + "]" * 700 + "}", " nested too deeply"),
    "servers no object": (
        '{\n"mcpServers": []}',
        "2, key 'mcpServers': must be an object of servers by name",
    ),
    "server no object": ('{"mcpServers":\n{"a": 1}}', "2, key 'mcpServers.a': must be an object"),
    "command a number": (
        '{"mcpServers":\n{"a": {\n"command": 1}}}',
        "3, key 'mcpServers.a.command': Input should be a valid string",
    ),
    "argument a number": (
        '{"mcpServers":\n{"a": {"command": "x", "args": [\n"1",\n2]}}}',
        "4, key 'mcpServers.a.args.1': Input should be a valid string",
    ),
    "environment a number": (
        '{"mcpServers": {"a": {"command": "x",\n"env": {\n"K": 1}}}}',
        "3, key 'mcpServers.a.env.K': Input should be a valid string",
    ),
    "neither command nor address": (
        '{"mcpServers": {\n"a": {}}}',
        "2, key 'mcpServers.a': needs 'command' or 'url'",
    ),
    "both": (
        '{"mcpServers": {"a": {"command": "x", "url": "http://h"}}}',
        "1, key 'mcpServers.a': has both 'command' and 'url': say which with 'type'",
    ),
    "stdio without command": (
        '{"mcpServers": {"a": {"type": "stdio", "url": "http://h"}}}',
        "1, key 'mcpServers.a': a server over stdio needs 'command'",
    ),
    "no address": (
        '{"mcpServers": {"a": {\n"url": "host/mcp"}}}',
        "2, key 'mcpServers.a.url': must be an http or https address",
    ),
    "unknown transport": (
        '{"mcpServers": {"a": {\n"type": "carrier", "command": "x"}}}',
        "2, key 'mcpServers.a.type': 'carrier' is no known transport: "
        "http, sse, stdio, streamable-http, streamableHttp, streamable_http",
    ),
    "timeout of zero": (
        '{"mcpServers": {"a": {"command": "x",\n"timeout_seconds": 0}}}',
        "2, key 'mcpServers.a.timeout_seconds': Input should be greater than 0",
    ),
    "name with two underscores": (
        '{"mcpServers": {\n"a__b": {"command": "x"}}}',
        "2, key 'mcpServers.a__b': server name 'a__b' may not contain '__' or '/'",
    ),
    "name with a slash": (
        '{"mcpServers": {\n"a/b": {"command": "x"}}}',
        "2, key 'mcpServers.a/b': server name 'a/b' may not contain '__' or '/'",
    ),
    "no name": ('{"mcpServers": {\n"": {"command": "x"}}}', "2, key 'mcpServers.': a server needs a name"),
    "one name twice": (
        '{"mcpServers": {"a": {"command": "x"},\n"a": {"command": "y"}}}',
        "2, key 'mcpServers.a': server 'a' stands twice",
    ),
    "one name under two keys": (
        '{"mcpServers": {"a": {"command": "x"}},\n"servers": {"a": {"command": "y"}}}',
        "2, key 'servers.a': server 'a' stands under two keys",
    ),
    "wrong class": (
        '{"skillbank": {"effects": {"a": {\n"*": "pur"}}}}',
        "2, key 'skillbank.effects.a.*': Input should be 'pure', 'read', 'write' or 'unknown'",
    ),
    "class without a pattern": (
        '{"skillbank": {\n"effects": {"a": "pure"}}}',
        "2, key 'skillbank.effects.a': Input should be a valid dictionary",
    ),
    "effects of a server twice": (
        '{"skillbank": {"effects": {"a": {},\n"a": {}}}}',
        "2, key 'skillbank.effects.a': 'a' stands twice",
    ),
    "wrong reset": (
        '{"skillbank": {"reset":\n{"a": "reboot"}}}',
        "2, key 'skillbank.reset.a': Input should be 'none', 'process' or 'process+dirs'",
    ),
    "allow no list": (
        '{"skillbank": {"allow":\n{"a": "send"}}}',
        "2, key 'skillbank.allow.a': Input should be a valid list",
    ),
    "wrong learning": (
        '{"skillbank": {\n\n"learning": "always"}}',
        "3, key 'skillbank.learning': Input should be 'auto', 'propose' or 'off'",
    ),
    "wrong learning of a server": (
        '{"skillbank": {"learning": {"*": "auto",\n"tables": "yes"}}}',
        "2, key 'skillbank.learning.tables': Input should be 'auto', 'propose' or 'off'",
    ),
    "label of no kind": (
        '{"skillbank": {"labels": {"mail": {\n"*": ["private", "secret"]}}}}',
        "2, key 'skillbank.labels.mail.*.1': Input should be 'private', 'untrusted', 'public_sink' or "
        "'destructive'",
    ),
    "flow from no tool": (
        '{"skillbank": {"flows": {\n"files": ["mail/*"]}}}',
        "2, key 'skillbank.flows.files.[key]': must be SERVER/TOOL, patterns allowed",
    ),
    "flow to no tool": (
        '{"skillbank": {"flows": {"files/*":\n["mail"]}}}',
        "2, key 'skillbank.flows.files/*.0': must be SERVER/TOOL, patterns allowed",
    ),
    "model no text": (
        '{"skillbank": {"models":\n{"default": null}}}',
        "2, key 'skillbank.models.default': Input should be a valid string",
    ),
    "model of no kind": (
        '{"skillbank": {"models":\n{"default": "gpt-9"}}}',
        "2, key 'skillbank.models.default': 'gpt-9' names no model: there is no kind of model called "
        f"'gpt-9'; forms: {MODEL_FORMS}",
    ),
    "model of no role": (
        '{"skillbank": {"models": {\n"planer": "none"}}}',
        "2, key 'skillbank.models.planer': no such role; there are: default, planner, editor, judge, "
        "explorer, embeddings",
    ),
    "role twice": (
        '{"skillbank": {"models": {"judge": "none",\n"judge": "none"}}}',
        "2, key 'skillbank.models.judge': 'judge' stands twice",
    ),
    "embeddings of a provider without": (
        '{"skillbank": {"models": {\n"embeddings": "anthropic:m"}}}',
        "2, key 'skillbank.models.embeddings': 'anthropic' has no embeddings: use openai:MODEL or "
        "openai-compatible:URL#MODEL",
    ),
    "our key no object": ('{\n"skillbank": 1}', "2, key 'skillbank': must be an object"),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_file_names_file_line_and_key(text, message):
    with pytest.raises(ConfigError) as caught:
        config_of(text)
    assert str(caught.value) == f"/project/config.json:{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a = \n", "1: not TOML: Invalid value (at line 1, column 5)", id="no TOML"),
        pytest.param(
            '[mcp_servers."it"]\nargs = []\ncommand = 1\n',
            "3, key 'mcp_servers.it.command': Input should be a valid string",
            id="command a number",
        ),
    ],
)
def test_a_malformed_toml_file_names_file_line_and_key(text, message):
    with pytest.raises(ConfigError) as caught:
        config_of(text, "config.toml")
    assert str(caught.value) == f"/project/config.toml:{message}"


def test_bytes_that_are_no_text_name_file_and_line(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(b'{\n"a": "\xff"}')
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}:2: not UTF-8 text"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${NAME}", "set"),
        ("${env:NAME}", "set"),
        ("${NAME:-other}", "set"),
        ("${EMPTY:-other}", ""),
        ("${NONE:-other}", "other"),
        ("${NONE:-}", ""),
        ("${workspaceFolder}/x", "/project/x"),
        ("${workspaceFolderBasename}", "project"),
        ("${userHome}/y", "/home/me/y"),
        ("a${pathSeparator}b${/}c", "a/b/c"),
        ("a ${NAME}-${NAME}", "a set-set"),
        ("$NAME $$ $", "$NAME $$ $"),
        ("${NONE:-{}", "{"),
    ],
)
def test_placeholders_of_every_dialect_are_filled(text, expected):
    spec = entry({"command": text, "args": [text], "env": {"K": text}, "cwd": text})
    done = expand(spec, {"NAME": "set", "EMPTY": "", "HOME": "/home/me"})
    assert (done.command, done.args, done.env, done.cwd) == (expected, (expected,), {"K": expected}, expected)


def test_addresses_and_headers_are_filled():
    spec = entry({"url": "https://${H}/mcp", "headers": {"A": "Bearer ${T}"}})
    done = expand(spec, {"H": "host", "T": "token"})
    assert (done.url, done.headers) == ("https://host/mcp", {"A": "Bearer token"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NONE}", "environment variable NONE is not set and ${NONE} has no default"),
        ("${env:NONE}", "environment variable NONE is not set and ${env:NONE} has no default"),
        ("${input:key}", "${input:key} names no input of this file; there are: none"),
        ("${userHome}", "${userHome} has no meaning here: neither HOME nor USERPROFILE is set"),
        ("${config:x.y}", "placeholder ${config:x.y} is not understood"),
        ("${A:-${B}}", "placeholder ${A:-${B} is not understood"),
        ("${}", "placeholder ${} is not understood"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_names_server_key_and_variable(text, message):
    with pytest.raises(ConfigError) as caught:
        expand(entry({"command": "x", "env": {"K": text}}), {})
    assert str(caught.value) == f"key 'it.env.K': server 'it': {message}"
    assert caught.value.key == "it.env.K"


@pytest.mark.parametrize(
    ("folder", "workspace"), [("/w/.vscode", "/w"), ("/w/.cursor", "/w"), ("/w/other", "/w/other")]
)
def test_the_workspace_is_the_folder_an_editor_would_have_open(folder, workspace):
    assert config_of(FORMATS["Claude"][1], folder=folder).servers["it"].workspace == workspace


ASKING = """{
  "servers": {"it": {"command": "run", "args": ["--key", "${input:key}", "${input:zone}"],
                     "env": {"Z": "${input:zone}"}}},
  "inputs": [
    {"type": "promptString", "id": "key", "description": "API key", "password": true},
    {"type": "pickString", "id": "zone", "default": "eu", "options": ["eu", {"label": "US", "value": "us"}]},
    {"type": "command", "id": "run", "command": "x.y"}
  ]
}"""


def test_inputs_of_an_editor_are_read():
    inputs = config_of(ASKING, "mcp.json").inputs
    assert [(i.id, i.kind, i.password, i.default, i.options) for i in inputs.values()] == [
        ("key", "promptString", True, None, ()),
        ("zone", "pickString", False, "eu", ("eu", "us")),
        ("run", "command", False, None, ()),
    ]
    assert inputs["key"].question == "API key"
    assert inputs["run"].question == (
        "run (result of the editor command 'x.y', which only the editor can run)"
    )
    assert inputs["zone"].problem("us") is None
    assert inputs["zone"].problem("mars") == "'mars' is none of: eu, us"
    assert len({i.key for i in inputs.values()}) == 3


def test_answers_are_looked_up_when_a_server_starts_and_hidden_ones_are_secrets():
    secrets = MemorySecrets()
    config = config_of(ASKING, "mcp.json").keeping(secrets)
    spec = config.servers["it"]
    assert spec.inputs_named == {"key", "zone"}
    with pytest.raises(ConfigError) as caught:
        expand(spec, {})
    assert str(caught.value) == (
        "key 'it.args.1': server 'it': input 'key' (API key) is not answered: skillbank inputs set key"
    )
    assert secrets_of(config, {}) == frozenset()
    secrets.put(config.inputs["key"].key, "sk-hush")
    secrets.put(config.inputs["zone"].key, "eu")
    done = expand(spec, {})
    assert (done.args, done.env) == (("--key", "sk-hush", "eu"), {"Z": "eu"})
    assert "sk-hush" in secrets_of(config, {})
    assert "hush" not in repr(config)
    assert "hush" not in spec.launch


def test_answers_of_one_file_are_not_those_of_another():
    here, there = (config_of(ASKING, "mcp.json", folder).inputs["key"].key for folder in ("/a", "/b"))
    assert here != there


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("{}", "2, key 'inputs': must be a list of inputs"),
        (
            '[{"type": "promptString", "id": "a"},\n{"type": "promptString", "id": "a"}]',
            "3, key 'inputs.1.id': input 'a' stands twice",
        ),
        (
            '[{"type": "ask", "id": "a"}]',
            "2, key 'inputs.0.type': Input should be 'promptString', 'pickString' or 'command'",
        ),
        ('[{"type": "promptString"}]', "2, key 'inputs.0.id': Field required"),
        ("[1]", "2, key 'inputs.0': must be an object"),
    ],
    ids=["no list", "twice", "kind", "no id", "no object"],
)
def test_malformed_inputs_name_file_line_and_key(inputs, message):
    with pytest.raises(ConfigError) as caught:
        config_of('{\n"inputs": ' + inputs + "}")
    assert str(caught.value) == f"/project/config.json:{message}"


def test_an_environment_file_is_read_when_the_server_starts_and_env_wins_over_it(tmp_path):
    (tmp_path / ".env").write_text(
        "# mine\nexport A=\"one\\ntwo\" # no\nB=three # four\nC='$X ${Y}'\n\nD = a=b\nE=\n"
    )
    text = (
        '{"mcpServers": {"it": {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"B": "mine"}}}}'
    )
    config = config_of(text, folder=str(tmp_path))
    assert expand(config.servers["it"], {}).env == {
        "A": "one\ntwo",
        "B": "mine",
        "C": "$X ${Y}",
        "D": "a=b",
        "E": "",
    }
    assert {"one\ntwo", "$X ${Y}", "a=b"} <= secrets_of(config, {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"A=1\nnonsense hush\n", ":2: is no NAME=value"),
        (b'A="open hush\n', ":1: is no NAME=value"),
        (b"\xff", "not UTF-8 text"),
        (b"A=1\n" * 300_000, "over 1000000 bytes"),
    ],
    ids=["missing", "no variable", "open quote", "no text", "huge"],
)
def test_an_environment_file_that_is_wrong_is_named_and_never_shown(tmp_path, content, message):
    if content is not None:
        (tmp_path / ".env").write_bytes(content)
    spec = config_of('{"mcpServers": {"it": {"command": "x", "envFile": ".env"}}}', folder=str(tmp_path))
    with pytest.raises(ConfigError) as caught:
        expand(spec.servers["it"], {})
    assert message in str(caught.value)
    assert str(tmp_path / ".env") in str(caught.value)
    assert "hush" not in str(caught.value)


def test_what_is_said_of_logging_in_is_read_in_both_spellings():
    claude = entry({"url": "https://h/mcp", "oauth": {"clientId": "${ID}", "callbackPort": 8080}})
    cursor = entry({"url": "https://h/mcp", "auth": {"CLIENT_ID": "a", "CLIENT_SECRET": "hush"}})
    assert expand(claude, {"ID": "me"}).oauth == OAuthSpec(client_id="me", callback_port=8080)
    assert (cursor.oauth.client_id, cursor.oauth.client_secret) == ("a", "hush")
    assert "hush" not in repr(cursor)
    assert entry({"url": "https://h/mcp", "auth": "oauth"}).oauth == OAuthSpec()
    for wrong in (
        {"callbackPort": 0},
        {"clientMetadataUrl": "http://h/x"},
        {"clientMetadataUrl": "https://h/"},
        1,
    ):
        with pytest.raises(ConfigError):
            entry({"url": "https://h/mcp", "oauth": wrong})


@pytest.mark.parametrize(
    ("value", "ourselves"),
    [
        ({"command": "skillbank", "args": ["serve"]}, True),
        ({"command": "/opt/bin/skillbank", "args": ["serve", "--store", "x"]}, True),
        ({"command": "C:\\bin\\skillbank.exe", "args": ["serve"]}, True),
        ({"command": "uvx", "args": ["skillbank[demo]==1.0", "serve"]}, True),
        ({"command": "uvx", "args": ["--from", "skillbank", "skillbank", "serve"]}, True),
        ({"command": "serve", "args": ["skillbank"]}, False),
        ({"command": "skillbank-tools", "args": ["serve"]}, False),
        ({"url": "https://h/skillbank/serve"}, False),
    ],
    ids=str,
)
def test_a_server_that_would_start_skillbank_again_is_recognised(value, ourselves):
    assert entry(value).is_ourselves is ourselves


def test_a_server_that_would_start_skillbank_again_is_flagged_and_never_started():
    config = config_of('{"mcpServers": {"me": {"command": "skillbank", "args": ["serve"]}}}')
    assert config.problems == ("server 'me' starts skillbank itself, which would start itself again",)
    with pytest.raises(ConfigError, match="starts skillbank itself"):
        expand(config.servers["me"], {})


def test_effects_of_a_server_that_is_not_there_are_a_problem_to_show():
    config = config_of('{"skillbank": {"effects": {"tabels": {"*": "read"}}}}')
    assert config.problems == ("skillbank.effects names server 'tabels', which is not configured",)


def test_a_key_of_ours_that_is_none_is_a_problem_to_show_and_refused_in_a_file_of_classes():
    known = (
        "effects, reset, reset_checks, allow, labels, flows, learning, models, principals, idle_seconds,"
        " curation, forward, publish"
    )
    config = config_of('{"skillbank": {"efects": {}}}')
    assert config.problems == (f"skillbank.efects is no key of ours and is not read; there are: {known}",)
    with pytest.raises(ConfigError, match=f"2, key 'efects': no such key; there are: {known}"):
        parse_profile(parse_document('{"effects": {},\n"efects": {}}', Path("classes.json")))


def test_secrets_are_not_in_the_representation():
    spec = entry({"command": "x", "env": {"K": "hush"}, "headers": {"A": "hush"}})
    assert "hush" not in repr(spec)


def test_a_new_file_is_its_owners_alone_and_an_old_one_keeps_its_mode(tmp_path):
    new, old = tmp_path / "folder" / "new.json", tmp_path / "old.json"
    old.write_text("{}")
    os.chmod(old, 0o644)
    save_config({"a": "ü"}, new)
    save_config({"a": "ü"}, old)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert stat.S_IMODE(old.stat().st_mode) == 0o644
    assert new.read_text() == old.read_text() == '{\n  "a": "ü"\n}\n'
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "old.json"]


def test_a_link_to_a_configuration_stays_a_link(tmp_path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    save_config({"a": 1}, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text()) == {"a": 1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.json", "{} // mine", "has comments, which a rewrite would lose: edit it by hand"),
        ("c.toml", "a = 1", "TOML is only read: use a JSON file as --config"),
    ],
)
def test_a_file_that_a_rewrite_would_harm_is_left_alone(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        save_config({"a": 1}, path)
    assert path.read_text() == text


def test_a_document_that_is_no_json_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "c.json"
    path.write_text("{}")
    with pytest.raises(TypeError):
        save_config({"a": object()}, path)  # pyright: ignore[reportArgumentType]
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]
    assert path.read_text() == "{}"


names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1).filter(
    lambda n: "__" not in n and "/" not in n and n.strip()
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(blacklist_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
unknown = st.dictionaries(names.map("x-{}".format), values, max_size=3)


@given(unknown, unknown, unknown, names)
def test_a_change_and_a_rewrite_keep_every_unknown_key(tmp_path_factory, outer, in_server, in_own, name):
    document = {
        **outer,
        "mcpServers": {name: {"command": "x", **in_server}},
        "skillbank": {**in_own, "effects": {name: {"a": "read"}}},
    }
    path = tmp_path_factory.mktemp("round") / "c.json"
    changed = with_effects(document, name, {"b": Effect.PURE})
    changed = with_allow(with_reset(changed, name, Reset.PROCESS), name, "c")
    save_config(with_server(changed, f"{name}2", {"command": "y"}), path)
    config = load_config(path)
    assert {key: config.document[key] for key in outer} == outer
    assert config.document["mcpServers"] == {
        name: {"command": "x", **in_server},
        f"{name}2": {"command": "y"},
    }
    assert config.document["skillbank"] == {
        **in_own,
        "effects": {name: {"a": "read", "b": "pure"}},
        "reset": {name: "process"},
        "allow": {name: ["c"]},
    }


@given(values.filter(lambda v: isinstance(v, dict)), st.sampled_from([None, 1, 4]))
def test_every_key_of_every_document_has_its_line(document, indent):
    text = json.dumps(document, indent=indent)
    lines = json_lines(text)

    def places(value, place=()):
        inner = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in inner:
            yield (*place, key)
            yield from places(item, (*place, key))

    assert list(lines) == list(places(document))
    for place, (line,) in lines.items():
        if indent is not None and isinstance(place[-1], str):
            assert text.splitlines()[line - 1].strip().startswith(json.dumps(place[-1]))


def test_comments_and_trailing_commas_inside_texts_are_texts():
    text = '{"a": "// no", "b": "/* no */ ,}", /* yes\n*/ "c": [1, ], }'
    document = parse_document(text, Path("c.json"))
    assert document.data == {"a": "// no", "b": "/* no */ ,}", "c": [1]}
    assert document.line_of(("c",)) == 2
    assert document.has_comments


def test_a_servers_key_that_is_there_is_used_and_effects_can_replace():
    changed = with_server({"servers": {}}, "a", {"command": "x"})
    assert changed == {"servers": {"a": {"command": "x"}}}
    once = with_effects(changed, "a", {"*": Effect.READ})
    assert with_effects(once, "a", {"b": Effect.PURE}, replace=True)["skillbank"] == {
        "effects": {"a": {"b": "pure"}}
    }
    assert changed == {"servers": {"a": {"command": "x"}}}


def test_consent_is_given_once_and_can_be_taken_back():
    once = with_allow({}, "a", "send")
    assert with_allow(once, "a", "send") == once == {"skillbank": {"allow": {"a": ["send"]}}}
    assert with_allow(once, "a", "send", allowed=False) == {"skillbank": {"allow": {"a": []}}}


def test_a_date_in_toml_is_text():
    config = config_of('[mcp_servers.it]\ncommand = "x"\nsince = 2026-01-05\n', "config.toml")
    assert config.document["mcp_servers"] == {"it": {"command": "x", "since": "2026-01-05"}}


def test_all_that_was_said_of_a_server_can_be_taken_out():
    said = with_allow(with_reset(with_effects({}, "a", {"*": Effect.PURE}), "a", Reset.PROCESS), "a", "x")
    kept = with_effects(said, "b", {"*": Effect.READ})
    assert without_profile(kept, "a")["skillbank"] == {
        "effects": {"b": {"*": "read"}},
        "reset": {},
        "allow": {},
    }
    assert without_profile({"x": 1}, "a") == {"x": 1}


def test_inputs_are_added_and_replaced_by_id():
    document = {"a": 1, "inputs": [{"id": "x", "type": "promptString"}, {"id": "y", "type": "promptString"}]}
    changed = with_inputs(document, [{"id": "y", "type": "command"}, {"id": "z", "type": "command"}])
    assert changed == {
        "a": 1,
        "inputs": [
            {"id": "x", "type": "promptString"},
            {"id": "y", "type": "command"},
            {"id": "z", "type": "command"},
        ],
    }
    assert with_inputs({"a": 1}, []) == {"a": 1}
