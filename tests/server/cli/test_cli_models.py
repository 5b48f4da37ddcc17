"""The model commands on a shelf of the test's own: what they print, refuse and return."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from server.models.known import KnownModel, Wheels
from server.reports import DoctorReport, ModelReport

WEIGHTS = b"GGUF weights of a model for tests " * 100
TINY = KnownModel(
    name="tiny",
    aliases=("small",),
    file="tiny.gguf",
    size_bytes=len(WEIGHTS),
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    licence="Apache-2.0",
    parameters="1",
    quantisation="Q1",
    context_tokens=512,
    source="https://example.org/tiny",
    url="http://127.0.0.1:9/tiny.gguf",
    wheels=Wheels(("tiny-weights==1.0",), "*/tiny.bin"),
    good_for="tests",
)
STAND_IN = Path(__file__).parents[1] / "models" / "stand_in_server.py"


@pytest.fixture
def models(cli, tmp_path, monkeypatch):
    """Run a model command where one tiny model is known and pip has its wheel."""
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/tiny.bin", WEIGHTS)
        info = "tiny_weights-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable}\n{STAND_IN.read_text('utf-8')}", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("SKILLBANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKILLBANK_LLAMA_SERVER", str(program))
    plain = cli.wiring
    cli.wiring = lambda: replace(plain(), known_models=(TINY,))
    return cli


def test_a_model_is_listed_fetched_and_listed_as_here(models):
    before = models("model", "list", "--json").json
    assert [(m["name"], m["fetched"], m["licence"], m["bytes"]) for m in before["models"]] == [
        ("tiny", False, "Apache-2.0", len(WEIGHTS))
    ]
    fetched = models("model", "fetch", "small", "--json")
    assert fetched.code == 0
    assert fetched.json["origin"] == "packages"
    assert fetched.json["runtime"]["origin"] == "named"
    assert Path(fetched.json["path"]).read_bytes() == WEIGHTS
    after = models("model", "list", "--json").json
    assert (after["models"][0]["fetched"], after["models"][0]["path"]) == (True, fetched.json["path"])
    assert models("model", "fetch", "tiny", "--json").json["origin"] == "kept"


def test_fetching_tells_a_person_where_it_came_from_and_how_to_use_it(models):
    ran = models("model", "fetch", "tiny", "--weights-only")
    assert "tiny: out of packages, none of them installed, SHA-256 as pinned, licence Apache-2.0" in ran.out
    assert "use it as  --model local:tiny" in ran.out
    assert "127.0.0.1 cannot be reached" in ran.err
    assert "taking it out of packages instead" in ran.err
    assert "llama-server" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("fetch", "huge"), 2, "unknown_model"),
        (("fetch", "tiny", "--from", "hub"), 4, "source_unusable"),
        (("serve", "tiny"), 1, "not_fetched"),
        (("serve", "nowhere.gguf"), 1, "not_fetched"),
        (("fetch", "tiny", "--from", "elsewhere"), 2, "misuse"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_what_cannot_be_done_is_a_kind_and_an_exit_code(models, arguments, code, kind):
    ran = models("model", *arguments, "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (code, kind)


def test_a_server_that_ends_by_itself_is_a_failure_with_its_last_words(models, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"damaged")
    ran = models("model", "serve", str(tmp_path / "bad.gguf"))
    assert ran.code == 1
    assert "error loading model: not a GGUF file" in ran.err


def examined(model: str, problem: str | None = None) -> ModelReport:
    return ModelReport(roles=("planner",), model=model, usable=problem is None, offers="", problem=problem)


def test_doctor_measures_the_usable_local_models(models):
    models("model", "fetch", "tiny", "--weights-only")
    seen = (examined("local:tiny"), examined("openai:some"), examined("local:huge", "no such model"))
    models.bank.answers["doctor"] = DoctorReport(servers=(), models=seen)
    ran = models("doctor", "--json")
    assert [(m["name"], m["prompt_tokens_per_second"]) for m in ran.json["local_models"]] == [("tiny", 80.0)]
    assert "local:tiny  80 tokens/s read, 9.0 written; 4 answers at once" in models("doctor").out


def test_doctor_tells_of_a_local_model_that_ended_before_it_was_measured(models):
    models.bank.answers["doctor"] = DoctorReport(servers=(), models=(examined("local:tiny"),))
    ran = models("doctor", "--json")
    assert ran.code == 1
    assert [problem.partition(" (")[0] for problem in ran.json["problems"]] == [
        "local:tiny: tiny is not on this machine"
    ]


def test_doctor_starts_no_model_where_none_plays_a_role(models):
    models.bank.answers["doctor"] = DoctorReport(servers=())
    assert models("doctor", "--json").json["local_models"] == []
    assert not (models.folder / "cache").exists()
