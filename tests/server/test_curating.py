"""A bank that stays good: skills are compared, audited, stepped down, repaired, recovered, and restored."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from functools import partial

import pytest

from catalog.config import CurationSpec, ResetCheck
from catalog.effects import Effect, Reset
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.bank.curation.curating import curate_skill, recover_stale
from server.bank.curation.mending import mend
from server.bank.errors import NotDecided, SkillNotCallable
from server.execution.consent import GrantAll
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks
from skills_store.episodes import TaskEpisode
from skills_store.utility import Use

pytestmark = pytest.mark.anyio

DIGEST = Checks(("length(output.digest) == `64`",))
TEXT = {"type": "string"}
NEVER, ALWAYS = CurationSpec(withhold=0.0), CurationSpec(withhold=0.5)


@pytest.fixture
def open_ticking(open_desk):
    """Open a desk whose clock goes on by a second whenever it is looked at."""
    seconds = itertools.count(1_700_000_000)
    return partial(open_desk, now=lambda: float(next(seconds)))


def task(text):
    return f"Compute the sha256 hash of the text '{text}'"


class Hasher:
    """A tool server that hashes right until it is told to hash wrong."""

    def __init__(self):
        self.wrong = False

    def sha256(self, arguments):
        if self.wrong:
            return Reply.text("disk is full", is_error=True)
        return {"digest": hashlib.sha256(arguments["text"].encode()).hexdigest()}

    def server(self):
        given = {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}
        gives = {"type": "object", "properties": {"digest": TEXT}, "required": ["digest"]}
        return ScriptedServer([ScriptedTool("sha256", self.sha256, given, gives, description="Hash a text.")])


@pytest.fixture
def hasher():
    return Hasher()


FREE = {"hashes": {"*": Effect.PURE}}


async def taught(desk):
    """Solve two like tasks, so that their skill is active."""
    for text in ("hello", "other words"):
        report = await desk.bank.solve(task(text), SolveRequest(checks=DIGEST))
    assert report.skill_state == "active", report.skill_reason
    return report.skill


def episode(desk, name, arm, right, share=0.5):
    """Keep a trial as if it had happened."""
    desk.store.record_episode(
        TaskEpisode(
            task("x"),
            "direct",
            "right" if right else "wrong",
            desk.context.clock(),
            skill=name,
            version=1,
            arm=arm,
            share=share,
        )
    )


def state_of(desk, name):
    return desk.store.head(name).state


class TestWithholding:
    async def test_leaves_the_skill_out_of_some_episodes_and_says_so(self, open_ticking):
        async with open_ticking(curation=ALWAYS) as desk:
            name = await taught(desk)
            reports = [await desk.bank.solve(task(f"n{n}"), SolveRequest(checks=DIGEST)) for n in range(12)]
            trials = desk.store.episodes(99, name)
        withheld = [report for report in reports if report.route != "direct"]
        assert {trial.arm for trial in trials} == {"guided", "withheld"}
        assert len(withheld) == sum(trial.arm == "withheld" for trial in trials)
        assert all(report.status in ("verified", "succeeded") for report in reports)
        assert all(any("left out of this one" in r for r in report.route_reasons) for report in withheld)
        assert {trial.share for trial in trials} == {0.5}

    async def test_never_happens_where_somebody_asks_for_the_skill(self, open_ticking):
        async with open_ticking(curation=ALWAYS) as desk:
            name = await taught(desk)
            for n in range(8):
                report = await desk.bank.solve(task(f"n{n}"), SolveRequest(route="direct"))
                assert (report.route, report.status) == ("direct", "succeeded")
                assert (await desk.bank.call_skill(name, {"text": f"m{n}"})).status == "succeeded"
            assert desk.store.count_trials(name, 1) == 0
            standing = (await desk.bank.audit((name,), dry_run=True)).skills[0]
        assert (standing.asked.of, standing.unasked.of) == (16, 0)

    @pytest.mark.parametrize("held", ["pinned", "off"])
    async def test_never_happens_where_a_person_holds_it_or_it_is_off(self, open_ticking, held):
        async with open_ticking(curation=NEVER if held == "off" else ALWAYS) as desk:
            name = await taught(desk)
            if held == "pinned":
                await desk.bank.pin(name)
            for n in range(8):
                assert (await desk.bank.solve(task(f"n{n}"), SolveRequest())).route == "direct"
            assert desk.store.count_trials(name, 1) == 0

    async def test_never_happens_where_doing_without_may_cost_a_write(self, open_ticking, node, document):
        saving = document(
            node("save", "notes/save_note", {"text": "$inputs.text"}),
            outputs={"count": "$nodes.save.output#/count"},
            inputs={"text": TEXT},
        )
        allow = ("notes/*",)
        wanted = RepairRequest(task="Save the note 'a'", inputs={"text": "a"}, save="saves", allow=allow)
        async with open_ticking(curation=ALWAYS) as desk:
            await desk.bank.repair(saving, wanted)
            await desk.bank.approve("saves")
            for n in range(6):
                report = await desk.bank.solve(f"Save the note 'n{n}'", SolveRequest(allow=allow))
                assert report.route == "direct"
            standing = (await desk.bank.audit(dry_run=True)).skills[0]
            assert desk.store.count_trials("saves", 1) == 0
        assert standing.not_compared == "doing without it may cost a write (notes/save_note)"

    async def test_gives_the_answer_of_the_skill_where_doing_without_came_to_nothing(self, open_ticking):
        """No plan is found for this task: the user gets the skill's answer, and the trial counts."""

        def lookup(arguments):
            return {"found": arguments["key"].upper()}

        given = {"type": "object", "properties": {"key": TEXT}, "required": ["key"]}
        gives = {"type": "object", "properties": {"found": TEXT}, "required": ["found"]}
        servers = {"s": ScriptedServer([ScriptedTool("zzz", lookup, given, gives, description="Qqq.")])}
        document = {
            "name": "finds",
            "inputs": given,
            "nodes": [
                {"id": "f", "tool": {"server": "s", "tool": "zzz"}, "arguments": {"key": "$inputs.key"}}
            ],
            "outputs": {"found": "$nodes.f.output#/found"},
        }
        request = RepairRequest(
            task="Translate 'one'",
            inputs={"key": "one"},
            save="finds",
            examples=({"key": "two"}, {"key": "three"}),
        )
        async with open_ticking(servers, effects={"s": {"*": Effect.PURE}}, curation=ALWAYS) as desk:
            await desk.bank.repair(document, request)
            reports = [
                await desk.bank.solve(
                    f"Translate 'w{n}'", SolveRequest(checks=Checks((f"output.found == 'W{n}'",)))
                )
                for n in range(8)
            ]
            trials = desk.store.episodes(99, "finds")
        assert {report.outputs["found"] for report in reports} == {f"W{n}" for n in range(8)}
        outcomes = {trial.outcome for trial in trials if trial.arm == "withheld"}
        told = [r.route_reasons for r in reports if "doing without it came to nothing" in r.route_reasons]
        assert (outcomes == {"wrong"}) == bool(told)
        assert "withheld" in {trial.arm for trial in trials}


class TestSteps:
    async def test_two_failures_in_a_row_lead_to_an_audit_and_a_failed_one_to_guidance_only(
        self, open_ticking, hasher
    ):
        async with open_ticking({"hashes": hasher.server()}, effects=FREE, curation=NEVER) as desk:
            name = await taught(desk)
            hasher.wrong = True
            for n in range(2):
                await desk.bank.solve(task(f"n{n}"), SolveRequest(checks=DIGEST, budget=Budget(candidates=2)))
            head = desk.store.head(name)
            audits = desk.store.audits(name, 9)
            published = desk.bank.published()
        assert (head.state, published) == ("context_only", [])
        assert head.reason.startswith("its audit failed: ")
        assert [(audit.kind, audit.passed) for audit in reversed(audits)] == [
            ("audit", False),
            ("repair", False),
        ]

    async def test_an_audit_that_passes_ends_the_veto_and_moves_nothing(self, open_ticking, hasher):
        async with open_ticking({"hashes": hasher.server()}, effects=FREE, curation=NEVER) as desk:
            name = await taught(desk)
            for _ in range(2):
                desk.store.record_use(Use(name, 1, "direct", False, False, desk.context.clock()))
            assert "its last 2 uses failed" in (await desk.bank.audit((name,), dry_run=True)).skills[0].due
            taken = await curate_skill(name, desk.context)
            report = await desk.bank.solve(task("third"), SolveRequest())
        assert [step.step for step in taken] == ["audit"]
        assert (report.route, report.status) == ("direct", "succeeded")

    async def test_a_skill_that_harms_goes_down_one_step_at_a_time_and_each_step_can_be_undone(
        self, open_ticking, hasher
    ):
        async with open_ticking({"hashes": hasher.server()}, effects=FREE) as desk:
            name = await taught(desk)
            harm = [("guided", False), ("withheld", True)] * 8
            for arm, right in harm:
                episode(desk, name, arm, right)
            (step,) = await curate_skill(name, desk.context)
            assert (step.step, state_of(desk, name)) == ("restrict", "context_only")
            assert "right in 0 of 8 with it" in desk.store.head(name).reason
            assert await curate_skill(name, desk.context) == []  # one step, and new evidence for the next
            for arm, right in harm:
                episode(desk, name, arm, right)
            (step,) = await curate_skill(name, desk.context)
            assert (step.step, state_of(desk, name)) == ("suppress", "suppressed")
            hasher.wrong = True
            first = await desk.bank.audit()
            assert state_of(desk, name) == "suppressed"
            second = await desk.bank.audit()
            assert state_of(desk, name) == "retired"
            for expected in ("proposed",):
                assert (await desk.bank.restore(name)).state == expected
            by = [(move.before, move.after, move.by) for move in desk.store.changes(name)][-4:]
        assert [step.step for step in first.taken] == ["audit"]
        assert [step.step for step in second.taken] == ["audit", "retire"]
        assert second.taken[-1].undo == f"skillbank skills restore {name}"
        assert by == [
            ("active", "context_only", "system"),
            ("context_only", "suppressed", "system"),
            ("suppressed", "retired", "system"),
            ("retired", "proposed", "person"),
        ]

    async def test_what_is_restored_starts_with_no_evidence_against_it(self, open_ticking):
        async with open_ticking() as desk:
            name = await taught(desk)
            for arm, right in [("guided", False), ("withheld", True)] * 8:
                episode(desk, name, arm, right)
            await curate_skill(name, desk.context)
            restored = await desk.bank.restore(name)
            assert await curate_skill(name, desk.context) == []
            assert [entry.tool_name for entry in desk.bank.published()] == [name]
            with pytest.raises(NotDecided, match="is active: restored by a person, although: it does worse"):
                await desk.bank.restore(name)
        assert restored.state == "active"

    @pytest.mark.parametrize("held", ["pinned", "written"])
    async def test_what_a_person_holds_is_told_and_not_moved(self, open_ticking, held, hasher):
        async with open_ticking({"hashes": hasher.server()}, effects=FREE) as desk:
            name = await taught(desk)
            if held == "pinned":
                await desk.bank.pin(name)
            else:
                document = desk.store.head(name).workflow.to_json()
                document["nodes"][0]["timeout_seconds"] = 5
                assert (await desk.bank.revise(name, document)).skill.version == 2
                await desk.bank.approve(name, 2) if desk.store.head(name).state != "active" else None
            version = desk.store.head(name).version
            hasher.wrong = True
            report = await desk.bank.audit((name,))
            assert desk.store.head(name).state == "active"
        assert report.skills[0].held
        assert [(step.step, step.version) for step in report.taken] == [("audit", version)]

    async def test_the_worlds_faults_are_no_evidence(self, open_ticking):
        async with open_ticking() as desk:
            name = await taught(desk)
            for _ in range(30):
                desk.store.record_use(Use(name, 1, "direct", False, True, desk.context.clock()))
            assert await curate_skill(name, desk.context) == []
            standing = (await desk.bank.audit((name,), dry_run=True)).skills[0]
        assert (standing.unasked.of, standing.suspicion, standing.utility) == (0, "", 0.5)

    async def test_a_skill_in_much_use_is_audited_anyway(self, open_ticking):
        async with open_ticking(curation=CurationSpec(withhold=0.0, audit_every=5)) as desk:
            name = await taught(desk)
            for n in range(5):
                await desk.bank.solve(task(f"n{n}"), SolveRequest())
            (audit,) = desk.store.audits(name, 9)
        assert audit.passed


def conversion(old, new):
    """Return a tool server whose one tool takes its value under a name, and what the later one is like."""

    def tool(name, argument):
        given = {
            "type": "object",
            "properties": {argument: {"type": "number"}},
            "required": [argument],
            "additionalProperties": False,
        }
        gives = {"type": "object", "properties": {"meters": {"type": "number"}}, "required": ["meters"]}
        return ScriptedTool(
            name, lambda a: {"meters": a[argument] * 1000}, given, gives, description="Kilometers in meters."
        )

    return [tool(*old)], [tool(*new)]


class TestDrift:
    @pytest.fixture
    def converting(self, node, document):
        return document(
            node("c", "lengths/to_meters", {"km": "$inputs.km"}),
            outputs={"meters": "$nodes.c.output#/meters"},
            inputs={"km": {"type": "number"}},
        )

    async def saved(self, desk, document):
        request = RepairRequest(
            task="How many meters are 3 km",
            inputs={"km": 3},
            checks=Checks(("output.meters == `3000`",)),
            save="meters",
        )
        assert (await desk.bank.repair(document, request)).skill_state == "active"

    async def test_a_renamed_argument_is_repaired_by_the_skills_tests(self, open_ticking, converting):
        before, after = conversion(("to_meters", "km"), ("to_meters", "kilometers"))
        async with open_ticking(
            {"lengths": ScriptedServer(before)}, effects={"lengths": {"*": Effect.PURE}}
        ) as desk:
            await self.saved(desk, converting)
            await desk.change("lengths", after)
            assert state_of(desk, "meters") == "stale"
            with pytest.raises(SkillNotCallable, match="lengths/to_meters changed"):
                await desk.bank.call_skill("meters", {"km": 2})
            (parked,) = await recover_stale(desk.context)
            assert "look at it, then `skillbank effects set lengths/to_meters CLASS`" in parked.reason
            await desk.bank.recheck_effects("lengths", "to_meters")
            (repaired,) = await recover_stale(desk.context)
            head = desk.store.head("meters")
            report = await desk.bank.call_skill("meters", {"km": 2})
        assert (repaired.step, parked.step) == ("repair", "parked")
        assert (head.version, head.state, head.provenance.parent_version) == (2, "active", 1)
        assert head.workflow.nodes[0].arguments == {"kilometers": "$inputs.km"}
        assert {test.name.split(" of version")[0] for test in head.tests} >= {"original"}
        assert report.outputs == {"meters": 2000}

    async def test_in_mode_propose_the_repaired_version_waits_beside_the_stale_one(
        self, open_ticking, converting
    ):
        before, after = conversion(("to_meters", "km"), ("to_meters", "kilometers"))
        async with open_ticking(
            {"lengths": ScriptedServer(before)}, effects={"lengths": {"*": Effect.PURE}}, learning="propose"
        ) as desk:
            request = RepairRequest(
                task="How many meters are 3 km",
                inputs={"km": 3},
                checks=Checks(("output.meters == `3000`",)),
                save="meters",
            )
            await desk.bank.repair(converting, request)
            await desk.bank.approve("meters")
            await desk.change("lengths", after)
            await desk.bank.recheck_effects("lengths", "to_meters")
            await recover_stale(desk.context)
            states = [(s.version, s.state) for s in desk.store.versions("meters")]
            waiting = [(item.name, item.version) for item in (await desk.bank.review_queue()).waiting]
            with pytest.raises(SkillNotCallable, match="stale"):
                await desk.bank.call_skill("meters", {"km": 2})
            await desk.bank.approve("meters", 2)
            assert (await desk.bank.call_skill("meters", {"km": 2})).outputs == {"meters": 2000}
        assert states == [(1, "stale"), (2, "proposed")]
        assert waiting == [("meters", 2)]

    async def test_a_tool_that_is_gone_is_replaced_by_one_that_does_the_same(self, open_ticking, converting):
        before, after = conversion(("to_meters", "km"), ("kilometers_to_meters", "km"))
        async with open_ticking(
            {"lengths": ScriptedServer(before)}, effects={"lengths": {"*": Effect.PURE}}
        ) as desk:
            await self.saved(desk, converting)
            await desk.change("lengths", after)
            assert desk.store.head("meters").reason == "lengths/to_meters is gone"
            (repaired,) = await recover_stale(desk.context)
            head = desk.store.head("meters")
        assert (repaired.step, head.version, head.state) == ("repair", 2, "active")
        assert head.workflow.nodes[0].tool.tool == "kilometers_to_meters"

    async def test_what_cannot_be_repaired_is_parked_with_the_reason(self, open_ticking, converting):
        before, _ = conversion(("to_meters", "km"), ("to_meters", "km"))
        async with open_ticking(
            {"lengths": ScriptedServer(before)}, effects={"lengths": {"*": Effect.PURE}}
        ) as desk:
            await self.saved(desk, converting)
            await desk.change("lengths", [ScriptedTool("unrelated", [{"x": 1}])])
            (parked,) = await recover_stale(desk.context)
            (audit,) = desk.store.audits("meters", 9)
            assert state_of(desk, "meters") == "stale"
        assert parked.step == "parked"
        assert (audit.kind, audit.passed) == ("repair", False)
        assert audit.detail.startswith("parked: ")


class TestHygiene:
    async def test_a_dry_run_does_nothing(self, open_ticking, hasher):
        async with open_ticking({"hashes": hasher.server()}, effects=FREE) as desk:
            name = await taught(desk)
            await desk.bank.solve(task("n"), SolveRequest())
            revision, calls = desk.bank.revision(), desk.count()
            report = await desk.bank.audit(dry_run=True)
            assert (desk.bank.revision(), desk.count()) == (revision, calls)
            assert desk.store.audits(name, 9) == []
        assert (report.taken, report.growth.by_state) == ((), {"active": 1})

    async def test_the_least_useful_are_guidance_only_past_the_budget_and_never_a_persons(
        self, open_ticking, node, document
    ):
        def adding(tool):
            return document(
                node("s", f"calculator/{tool}", {"a": "$inputs.a", "b": "$inputs.b"}),
                outputs={"r": "$nodes.s.output#/result"},
                inputs={"a": {"type": "number"}, "b": {"type": "number"}},
            )

        async with open_ticking(curation=CurationSpec(most_active=1)) as desk:
            for name, tool in (("adds", "add"), ("multiplies", "multiply")):
                await desk.bank.repair(adding(tool), RepairRequest(inputs={"a": 3, "b": 4}, save=name))
            await desk.bank.call_skill("multiplies", {"a": 2, "b": 2})
            dry = await desk.bank.audit(dry_run=True)
            await desk.bank.pin("adds")
            held = await desk.bank.audit(dry_run=True)
            await desk.bank.unpin("adds")
            done = await desk.bank.audit()
            states = {skill.name: skill.state for skill in desk.store.heads()}
            assert (await desk.bank.restore("adds")).state == "active"
        assert dry.budget.to_guidance == ("adds",)
        assert held.budget.to_guidance == ("multiplies",)
        assert states == {"adds": "context_only", "multiplies": "active"}
        assert [step.step for step in done.taken if step.skill == "adds"][-1] == "budget"

    async def test_old_traces_are_forgotten_but_not_those_a_skill_was_made_of(self, open_ticking):
        async with open_ticking() as desk:
            name = await taught(desk)
            made_of = set(desk.store.head(name).provenance.traces)
            await desk.bank.solve(task("n"), SolveRequest())
            before = {trace.id for trace in desk.store.traces(99)}
            later = desk.context.clock() + 400 * 86_400
            object.__setattr__(desk.context, "clock", lambda: later)
            report = await desk.bank.audit()
            left = {trace.id for trace in desk.store.traces(99)}
        assert left == made_of & before
        assert report.retention.runs == len(before - left) > 0
        assert report.skills[0].notes == ("unused",)

    async def test_skills_that_differ_in_a_constant_are_suggested_to_be_one(
        self, open_ticking, node, document
    ):
        def adding(number):
            return document(
                node("s", "calculator/add", {"a": "$inputs.a", "b": number}),
                outputs={"r": "$nodes.s.output#/result"},
                inputs={"a": {"type": "number"}},
            )

        async with open_ticking() as desk:
            for number in (7, 9):
                request = RepairRequest(inputs={"a": 3}, save=f"adds_{number}")
                await desk.bank.repair(adding(number), request)
            report = await desk.bank.audit(dry_run=True)
        assert [(m.keep, m.merge) for m in report.merge] == [("adds_7", "adds_9")]


class TestRepairingWhatWrites:
    """A skill over a tool that is not free, on a server whose fresh process is said to forget it."""

    @pytest.fixture
    def noting(self, node, document):
        return document(
            node("c", "lengths/to_meters", {"km": "$inputs.km"}),
            outputs={"meters": "$nodes.c.output#/meters"},
            inputs={"km": {"type": "number"}},
        )

    @pytest.mark.parametrize(
        ("check", "is_repaired"),
        [
            pytest.param(ResetCheck(Reset.PROCESS, "holds", "2026-11-30", "seen"), True, id="holds"),
            pytest.param(ResetCheck(Reset.PROCESS, "refuted", "2026-11-30", "a file"), False, id="refuted"),
            pytest.param(ResetCheck(Reset.PROCESS_DIRS, "holds", "2026-11-30", "seen"), False, id="another"),
            pytest.param(None, False, id="never-tried"),
        ],
    )
    async def test_is_tried_alone_only_where_a_trial_of_its_reset_mode_holds(
        self, open_ticking, noting, check, is_repaired
    ):
        before, after = conversion(("to_meters", "km"), ("to_meters", "kilometers"))
        server = ScriptedServer(before)
        async with open_ticking(
            {"lengths": server},
            effects={"lengths": {"*": Effect.WRITE}},
            reset={"lengths": Reset.PROCESS},
            consent=GrantAll(),
        ) as desk:
            request = RepairRequest(
                task="How many meters are 3 km",
                inputs={"km": 3},
                checks=Checks(("output.meters == `3000`",)),
                save="meters",
            )
            await desk.bank.repair(noting, request)
            await desk.change("lengths", after)
            await desk.context.snapshot()
            await desk.bank.recheck_effects("lengths", "*")
            skill = desk.store.versions("meters")[0]
            checks = {} if check is None else {"lengths": check}
            config = replace(desk.context.config, reset_checks=checks)
            calls = server.log.count("to_meters")
            mended = await mend(skill, replace(desk.context, config=config))
            made = server.log.count("to_meters") - calls
        assert (mended.skill is not None) == is_repaired, mended.reason
        if is_repaired:
            assert mended.skill.workflow.nodes[0].arguments == {"kilometers": "$inputs.km"}
            assert mended.skill.state == "proposed"
        else:
            assert "`skillbank effects verify lengths`" in mended.reason
            assert made == 0
