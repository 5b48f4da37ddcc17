"""What a model reads when something is wrong, and the names it chooses from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from catalog.errors import ConfigError, SchemaRejected, ServerUnavailable
from catalog.names import NAME_PATTERN
from catalog.tools import ToolId
from server.backends.errors import BackendMisconfigured
from server.bank.errors import SkillNotCallable
from server.exploration.errors import NothingToExplore
from server.surface import BUILTIN_NAMES, listed_names
from server.surface.failures import ERROR_META_KEY, failure_result, render_error
from server.surface.remedies import remedy
from skills_store.errors import MalformedWorkflow, StoreUnusable, UnknownSkill, VersionConflict
from skills_store.workflow import faults as f

ADD = ToolId("math", "add")
SUM = ToolId("math", "sum")

REMEDIES = [
    (f.Malformed(message="x"), "Correct the document there."),
    (
        f.UnknownTool(message="x", tool=ADD, similar=(SUM,)),
        "Perhaps math/sum. find_tools lists what there is.",
    ),
    (f.MissingArgument(message="x", argument="a"), "Give 'a'."),
    (f.UnexpectedArgument(message="x", argument="a", allowed=("b", "c")), "Allowed are: b, c."),
    (f.UnexpectedArgument(message="x", argument="a"), "Leave it out."),
    (f.InvalidArgument(message="x"), "Give a value that its schema allows."),
    (f.DanglingReference(message="x", reference="$item", available=("a",)), "There is: a."),
    (f.MissingOutput(message="x", output="o"), "Refer to something else."),
    (f.Cycle(message="x", nodes=("a", "b")), "Break the circle of a, b."),
    (f.OverLimit(message="x"), "Ask for less at a time."),
    (
        f.ToolError(message="x", tool=ADD),
        "Try math/add alone with call_tool, or mend the workflow with repair_workflow.",
    ),
    (
        f.CheckFailed(message="x"),
        "The answer is not what was asked for: repair_workflow can search for a workflow that is.",
    ),
    (
        f.TimeoutFault(message="x", tool=ADD),
        "Nothing is wrong with the request: try again later, or allow more timeout_seconds.",
    ),
    (
        f.ServerUnavailableFault(message="x", tool=ADD),
        "Nothing is wrong with the request: tool server math must be up first.",
    ),
    (
        f.Denied(message="x", tool=ADD),
        "It is not repeated, since it may change something each time.",
    ),
    (
        f.Denied(message="x", tool=ADD, needs_approval=True),
        "The user must allow it: when asked, or by `skillbank effects approve math/add` or"
        " `skillbank effects set math/add CLASS`.",
    ),
]


@pytest.mark.parametrize(("fault", "expected"), REMEDIES, ids=lambda value: getattr(value, "kind", ""))
def test_each_fault_has_a_remedy(fault: f.Fault, expected: str):
    assert remedy(fault) == expected


TOLD = [
    pytest.param(UnknownSkill("there is no skill x"), id="unknown-skill"),
    pytest.param(SkillNotCallable("x@1 is stale: its tool changed"), id="not-callable"),
    pytest.param(SchemaRejected("depth over 64"), id="schema"),
    pytest.param(MalformedWorkflow([f.Malformed(message="no nodes", pointer="/nodes")]), id="malformed"),
]


@pytest.mark.parametrize("error", TOLD)
def test_what_a_model_can_mend_is_told_in_the_errors_words(error: Exception):
    reason = str(error).removeprefix("/nodes: ")
    assert reason in render_error(error, "solve")


KEPT = [
    pytest.param(ConfigError("bad", file="/secret/config.json", line=3), id="config"),
    pytest.param(StoreUnusable("/secret/store.db is newer"), id="store"),
    pytest.param(ServerUnavailable("mail", "/secret/mail-server not found"), id="server"),
    pytest.param(VersionConflict("/secret"), id="conflict"),
    pytest.param(KeyError("/secret"), id="unforeseen"),
]


@pytest.mark.parametrize("error", KEPT)
def test_no_path_of_ours_is_told(error: Exception):
    told = render_error(error, "solve")
    assert "/secret" not in told
    assert len(told) > 20


def test_an_unreachable_server_is_named():
    assert render_error(ServerUnavailable("mail", "gone"), "solve") == snapshot(
        "Tool server mail is not reachable now. Try again later."
    )


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,39}", fullmatch=True)


@given(st.sets(NAMES | st.sampled_from(BUILTIN_NAMES) | st.just("skill__solve")))
def test_listed_names_are_portable_unique_and_never_those_of_always_there_tools(published: set[str]):
    listed = listed_names(published)
    names = list(listed.values())
    assert set(listed) == published
    assert len(set(names)) == len(names)
    assert not set(names) & set(BUILTIN_NAMES)
    assert all(NAME_PATTERN.fullmatch(name) for name in names)
    assert listed == listed_names(sorted(published, reverse=True))


CODES = [
    pytest.param(MalformedWorkflow([f.Malformed(message="no nodes")]), "malformed_workflow", id="malformed"),
    pytest.param(UnknownSkill("there is no skill x"), "unknown_skill", id="unknown-skill"),
    pytest.param(VersionConflict("two"), "conflict", id="conflict"),
    pytest.param(SkillNotCallable("x@1 is stale"), "refused", id="not-callable"),
    pytest.param(NothingToExplore("nothing may be called"), "refused", id="exploration"),
    pytest.param(BackendMisconfigured("no key"), "model_failed", id="model"),
    pytest.param(ServerUnavailable("mail", "gone"), "server_unavailable", id="server"),
    pytest.param(StoreUnusable("newer"), "not_set_up", id="store"),
    pytest.param(RuntimeError("anything"), "internal", id="unforeseen"),
]


@pytest.mark.parametrize(("error", "code"), CODES)
def test_each_error_has_a_code_for_programs(error: Exception, code: str):
    result = failure_result(error, "solve")
    assert (result.is_error, result.meta) == (True, {ERROR_META_KEY: code})
