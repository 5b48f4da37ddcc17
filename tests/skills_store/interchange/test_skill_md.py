"""A skill as an Agent Skill: what hosts read of it, and that nothing hostile gets into it."""

from __future__ import annotations

import json

from skills_ref import validate  # pyright: ignore[reportMissingTypeStubs]
from skills_ref.parser import parse_frontmatter  # pyright: ignore[reportMissingTypeStubs]

from skills_store.interchange.portable import portable, skill_digest
from skills_store.interchange.skill_md import agent_skill_name, render_package, render_skill_md
from skills_store.skill import AdmissionVerdict, Guidance, Skill
from tests.skills_store.conftest import make_skill


def _written(skill: Skill, folder):
    package = folder / agent_skill_name(skill.name)
    for path, content in render_package(skill).items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_bytes(content)
    return package


def test_the_reference_validator_accepts_the_package(tmp_path):
    skill = make_skill(name="city_temperature", description='Says "how warm" it is: now.', title="Warm?")
    package = _written(skill, tmp_path)
    assert validate(package) == []
    fields, _ = parse_frontmatter((package / "SKILL.md").read_text())
    assert fields["name"] == "city-temperature"
    assert fields["metadata"]["io.skillbank/name"] == "city_temperature"
    assert fields["metadata"]["io.skillbank/digest"] == skill_digest(skill)
    assert fields["allowed-tools"] == "weather/current"


def test_the_workflow_in_the_package_is_the_skill_s():
    skill = make_skill()
    files = render_package(skill)
    assert json.loads(files["assets/workflow.json"]) == skill.workflow.to_json()
    assert json.loads(files["assets/tests.json"])[0]["inputs"] == {"city": "Oslo"}
    assert sorted(files) == [
        "SKILL.md",
        "assets/evidence.json",
        "assets/schema.json",
        "assets/skill.json",
        "assets/tests.json",
        "assets/workflow.json",
        "scripts/run.py",
    ]
    compile(files["scripts/run.py"], "run.py", "exec")


def test_text_cannot_break_out_of_the_frontmatter(tmp_path):
    evil = 'x"\n---\nname: other\u2028\u202e\x1b[31m # \u0000'
    skill = make_skill(description=evil, guidance=Guidance(when_to_use=evil, pitfalls=(evil,)))
    package = _written(skill, tmp_path)
    assert validate(package) == []
    fields, _ = parse_frontmatter((package / "SKILL.md").read_text())
    assert fields["name"] == "temperature"
    assert not {"\u202e", "\x1b", "\u0000"} & set((package / "SKILL.md").read_text())


def test_what_a_bank_thinks_of_a_skill_is_no_part_of_its_digest():
    skill = make_skill()
    moved = skill.model_copy(
        update={"state": "active", "version": 7, "verdict": AdmissionVerdict(state="active", reason="good")}
    )
    assert skill_digest(moved) == skill_digest(skill)
    assert skill_digest(make_skill(description="other")) != skill_digest(skill)
    assert portable(skill).to_json()["workflow"] == skill.workflow.to_json()


def test_a_long_workflow_stays_within_what_hosts_take():
    skill = make_skill()
    node = skill.workflow.nodes[0]
    nodes = tuple(node.model_copy(update={"id": f"n{number}"}) for number in range(600))
    text = render_skill_md(
        skill.model_copy(update={"workflow": skill.workflow.model_copy(update={"nodes": nodes})})
    )
    assert len(text.splitlines()) < 500
    assert "500 more in `assets/workflow.json`" in text
