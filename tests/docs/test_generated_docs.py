"""Documents say what the program has: nothing is stale, and nothing a person can set goes unsaid."""

from __future__ import annotations

import re

import pytest
from generated import DOCUMENTS, PROJECT, REGIONS, replaced
from reading import PAGES, links, rows

from catalog.config.formats import _Entry, _Own
from catalog.effects import Effect
from catalog.tools import ToolId
from server import settings
from skills_store.admission import judge_admission
from skills_store.evidence import Evidence, UsedTool
from skills_store.skill import Signature, Skill
from skills_store.workflow.model import Node, Workflow


@pytest.mark.parametrize("document", REGIONS)
def test_generated_parts_are_up_to_date(document: str):
    text = (DOCUMENTS / document).read_text("utf-8")
    assert text == replaced(document, text), "run: python tests/docs/generated.py"


def _keys(model: type) -> list[str]:
    found: list[str] = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        choices = getattr(alias, "choices", [alias or name])
        found += [str(choice) for choice in choices]
    return found


@pytest.mark.parametrize("key", [*_keys(_Entry), *_keys(_Own)])
def test_every_key_of_the_configuration_is_documented(key: str):
    text = (DOCUMENTS / "configuration.md").read_text("utf-8")
    assert re.search(rf'[`"]{re.escape(key)}\b', text), f"{key} is read and not documented"


def test_every_variable_that_is_read_is_documented():
    text = (DOCUMENTS / "configuration.md").read_text("utf-8")
    names = [getattr(settings, name) for name in settings.__all__ if name.endswith("_VARIABLE")]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_environment_is_read_in_one_place_per_border():
    readers = {
        str(path.relative_to(PROJECT))
        for package in ("catalog", "skills_store", "server")
        for path in (PROJECT / package).rglob("*.py")
        if re.search(r"\bos\.(getenv|environ\.get|environ\[)", path.read_text("utf-8"))
    }
    assert {reader for reader in readers if not reader.startswith("catalog/testing/")} == set()


def test_the_gates_of_the_documents_are_those_of_admission():
    tool = ToolId("clock", "convert_time")
    workflow = Workflow(
        name="w",
        inputs={"type": "object"},
        nodes=(Node(id="a", tool=tool),),
        outputs={"x": "$nodes.a.output"},
    )
    skill = Skill(
        name="w",
        version=1,
        state="proposed",
        workflow=workflow,
        content_hash="sha256:a",
        shape_hash="sha256:b",
        signature=Signature(input_schema={"type": "object"}, output_schema={"type": "object"}),
    )
    verdict = judge_admission(Evidence(skill, "auto", (UsedTool(tool, Effect.READ),)))
    documented = [(gate, name) for gate, name, _ in rows(DOCUMENTS / "skills.md", "gate")]
    assert documented == [(check.gate, check.name) for check in verdict.checks]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in links(page):
        name, _, heading = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), f"{page.name} links to {target}"
        if heading:
            heads = re.findall(r"^#+ (.*)$", found.read_text("utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads]
            assert heading in slugs, f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_reached_from_the_readme(page):
    reached = {(PROJECT / target.partition("#")[0]).resolve() for target in links(PROJECT / "README.md")}
    assert page == PROJECT / "README.md" or page in reached
