"""Which skills a task in words finds, in which order, and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.tools import ToolId
from skills_store.lifecycle import STATES
from skills_store.retrieval import NOT_RECALLED, Circumstances, SkillIndex, confusable
from skills_store.skill import Guidance, Provenance, ReplayTest, Signature, Skill
from skills_store.utility import UseCounts
from skills_store.workflow.model import Node, Workflow

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def a_skill(name: str, task: str = "", inputs: dict[str, Any] | None = None, **changes: Any) -> Skill:
    schema = {"type": "object", "properties": inputs or {}, "required": sorted(inputs or {})}
    workflow = Workflow(
        name=name,
        inputs=schema,
        nodes=(Node(id="only", tool=ToolId("a", "b")),),
        outputs={"o": "$nodes.only.output"},
    )
    fields: dict[str, Any] = {
        "name": name,
        "version": 1,
        "state": "active",
        "workflow": workflow,
        "content_hash": f"sha256:{name}",
        "shape_hash": "sha256:s",
        "signature": Signature(input_schema=schema, output_schema={"type": "object"}),
        "provenance": Provenance(task=task or None),
    }
    return Skill(**{**fields, **changes})


TEMPERATURE = a_skill(
    "city_temperature",
    "What is the temperature in Oslo in fahrenheit?",
    {"city": {**TEXT, "description": "name of the town"}},
    tests=(ReplayTest(name="original", inputs={"city": "Oslo"}, outputs={}),),
)
HASHES = a_skill(
    "hash_of_file",
    "Give the sha256 hash of the file a.txt",
    {"path": TEXT, "algorithm": {**TEXT, "enum": ["md5", "sha256"]}},
    tags=("checksum",),
)
LOAN = a_skill(
    "monthly_payment",
    "What does a loan of 1000 at 5 percent cost a month over 12 months?",
    {"principal": NUMBER, "rate": NUMBER, "months": {"type": "integer"}},
    description="Instalment of an annuity.",
    guidance=Guidance(when_to_use="When a mortgage is compared."),
)
BANK = (TEMPERATURE, HASHES, LOAN)


def used(counts: dict[str, UseCounts]) -> Circumstances:
    return Circumstances(uses=lambda name: counts.get(name, UseCounts()))


def found(query: str, bank: tuple[Skill, ...] = BANK, **options: Any) -> list[str]:
    return [hit.skill.name for hit in SkillIndex(bank).search(query, **options)]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        pytest.param("temperature in Lima in fahrenheit", "city_temperature", id="same-task-other-value"),
        pytest.param("how warm is a town", "city_temperature", id="input-description"),
        pytest.param("checksums", "hash_of_file", id="tag-in-the-plural"),
        pytest.param("md5 of my file", "hash_of_file", id="enum-value"),
        pytest.param("annuity", "monthly_payment", id="description"),
        pytest.param("compare mortgages", "monthly_payment", id="guidance"),
        pytest.param("monthlyPayment", "monthly_payment", id="name-in-another-case"),
        pytest.param(
            "loan of 250000 at 3.5 percent for 360 months", "monthly_payment", id="numbers-are-values"
        ),
    ],
)
def test_a_skill_is_found_by_what_tells_it(query, name):
    assert found(query)[0] == name


@pytest.mark.parametrize("query", ["", "   ", "the of and", "5", "zebra", "'quoted only'", "\x00\ud800", '"'])
def test_a_query_that_speaks_of_no_skill_finds_none(query):
    assert found(query) == []


def test_a_value_of_the_original_task_is_not_what_a_skill_is_about():
    weather = a_skill("forecast", "weather forecast", {"city": TEXT})
    assert found("Oslo museums", (TEMPERATURE, weather)) == []


def test_the_name_itself_is_the_best_hit_there_can_be():
    hit = SkillIndex(BANK).search("hash_of_file", beside=used({"hash_of_file": UseCounts(1000, 1000)}))[0]
    assert hit.skill is HASHES
    assert hit.score > 0.84


def test_a_score_means_the_same_in_a_bank_of_one():
    query = "temperature in Lima in fahrenheit"
    alone = SkillIndex([TEMPERATURE]).search(query)[0].score
    among = SkillIndex(BANK).search(query)[0].score
    assert alone > 0.6
    assert alone == pytest.approx(among, abs=0.15)


def test_a_hit_says_why():
    uses = {"monthly_payment": UseCounts(5, 3, 1)}
    hit = SkillIndex(BANK).search("monthly loan cost of 1000 at 5", beside=used(uses))[0]
    assert hit.reasons == (
        "name: monthly",
        "task: loan, cost",
        "values for 67% of its required inputs are in the query",
        "3 of 4 uses succeeded",
    )


def test_a_hit_that_is_not_active_says_so():
    stale = LOAN.model_copy(update={"state": "stale"})
    assert "it is stale" in SkillIndex([stale]).search("loan")[0].reasons


@pytest.mark.parametrize("state", STATES)
def test_nobody_is_led_to_a_skill_that_was_set_aside(state):
    assert bool(found("loan", (LOAN.model_copy(update={"state": state}),))) == (state not in NOT_RECALLED)


def test_of_two_that_cover_the_same_the_one_whose_inputs_fit_comes_first():
    numeric = a_skill("convert_b", "convert units", {"a": NUMBER, "b": NUMBER})
    textual = a_skill("convert_a", "convert units", {"a": {**TEXT, "enum": ["metre", "mile"]}})
    assert found("convert 5 to 7 units", (numeric, textual)) == ["convert_b", "convert_a"]
    assert found("convert units to mile", (numeric, textual)) == ["convert_a", "convert_b"]


def test_of_two_that_fit_the_same_the_one_that_works_comes_first():
    twins = (a_skill("add_a", "add numbers"), a_skill("add_b", "add numbers"))
    uses = {"add_a": UseCounts(9, 1), "add_b": UseCounts(9, 8)}
    hits = SkillIndex(twins).search("add numbers", beside=used(uses))
    assert [hit.skill.name for hit in hits] == ["add_b", "add_a"]


def test_a_task_of_the_same_pattern_comes_first_whatever_else_fits():
    twins = (a_skill("add_a", "add numbers"), a_skill("add_b", "add numbers", {"city": TEXT}))
    assert found("add numbers", twins) == ["add_a", "add_b"]
    hits = SkillIndex(twins).search(
        "add numbers", beside=Circumstances(alike=lambda skill: {"add_b": 0.9, "add_a": 0.5}[skill.name])
    )
    assert [hit.skill.name for hit in hits] == ["add_b", "add_a"]
    assert hits[0].score >= hits[1].score
    assert hits[0].reasons[0] == "same task pattern: 0.90"
    assert confusable(hits) == ()


def test_what_speaks_against_a_skill_takes_from_its_score_and_is_told():
    sound = SkillIndex([LOAN]).search("loan")[0]
    risky = SkillIndex([LOAN]).search("loan", beside=Circumstances(risk=lambda _: 0.5))[0]
    assert risky.score == pytest.approx(0.75 * sound.score)
    assert risky.reasons[-1] == "what speaks against it: 0.50"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("add numbers", ("add_a", "add_b"), id="twins"),
        pytest.param("loan", (), id="one"),
        pytest.param("loan a month, and a file", (), id="one-clearly-ahead"),
        pytest.param("zebra", (), id="none"),
    ],
)
def test_hits_that_fit_about_alike_are_named(query, names):
    twins = (a_skill("add_a", "add numbers"), a_skill("add_b", "add numbers"))
    assert confusable(SkillIndex((*BANK, *twins)).search(query)) == names


def test_equal_hits_are_ordered_by_name_and_cut_at_the_limit():
    twins = tuple(a_skill(f"add_{letter}", "add numbers") for letter in "dbca")
    assert found("add numbers", twins, limit=3) == ["add_a", "add_b", "add_c"]


@given(st.permutations(BANK), st.text(max_size=40) | st.sampled_from(["loan file temperature", "hash 'a' 5"]))
def test_scores_lie_in_the_unit_and_do_not_depend_on_the_order_of_the_bank(bank, query):
    hits = SkillIndex(bank).search(query)
    assert hits == SkillIndex(BANK).search(query)
    assert all(0 < hit.score <= 1 and hit.reasons for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_an_index_that_follows_its_bank_finds_what_one_made_anew_finds():
    index = SkillIndex(BANK)
    later = (TEMPERATURE, LOAN.model_copy(update={"state": "retired"}), a_skill("add", "add numbers"))
    index.update(later)
    for query in ("loan", "hash a file", "add numbers", "temperature in Lima"):
        assert index.search(query) == SkillIndex(later).search(query)


def test_what_may_not_be_found_does_not_count_either():
    query = "temperature in Lima in fahrenheit"
    among = SkillIndex(BANK).search(query, allowed=frozenset({TEMPERATURE.name}))
    assert among == SkillIndex([TEMPERATURE]).search(query)
