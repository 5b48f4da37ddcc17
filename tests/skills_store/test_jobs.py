"""What every store of jobs and approvals promises, run on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.tools import ToolId
from skills_store.approvals import Approval, approval_for, exact_pattern
from skills_store.jobs import Job, JobCall, JobMessage
from skills_store.sqlite import open_sqlite_store
from skills_store.store import MemoryStore, Store

SEND = ToolId("mail", "send")


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path: Path) -> Iterator[Store]:
    opened: Store = MemoryStore() if request.param == "memory" else open_sqlite_store(tmp_path / "s.db")
    yield opened
    opened.close()


def a_job(**changes) -> Job:
    job = Job(id="j1", tool="solve", arguments={"task": "x"}, created_at=1.0, updated_at=1.0, keep_seconds=10)
    return job.model_copy(update=changes)


def a_call(**changes) -> JobCall:
    call = JobCall(number=0, node="a", items=(), tool=SEND, arguments_digest="sha256:x", is_free=False)
    return call.model_copy(update=changes)


def test_a_job_is_there_as_it_was_given_and_only_its_owner_changes_it(store: Store):
    jobs = store.jobs("ann")
    jobs.add(a_job(), owner="p1", lease_until=5.0)
    assert jobs.job("j1") == a_job()
    done = a_job(status="completed", result={"odd": "\ud800", "n": [1, None]}, updated_at=2.0)
    assert not jobs.save(done, owner="p2")
    assert jobs.job("j1") == a_job()
    assert jobs.save(done, owner="p1")
    assert jobs.job("j1") == done


def test_the_newest_job_is_listed_first(store: Store):
    for name in ("j1", "j2", "j3"):
        store.jobs("ann").add(a_job(id=name), owner="p1", lease_until=5.0)
    assert [job.id for job in store.jobs("ann").jobs(2)] == ["j3", "j2"]


def test_a_job_is_taken_over_once_when_its_lease_ran_out_or_was_given_up(store: Store):
    jobs = store.jobs("ann")
    jobs.add(a_job(), owner="p1", lease_until=5.0)
    assert jobs.claim("p2", now=4.0, lease_until=9.0) == []
    assert [job.id for job in jobs.claim("p2", now=6.0, lease_until=9.0)] == ["j1"]
    assert jobs.claim("p3", now=6.0, lease_until=9.0) == []
    jobs.release("p1")
    assert jobs.claim("p3", now=6.0, lease_until=9.0) == []
    jobs.release("p2")
    assert [job.id for job in jobs.claim("p3", now=6.0, lease_until=9.0)] == ["j1"]


def test_a_renewed_lease_holds_and_an_ended_job_is_never_taken_over(store: Store):
    jobs = store.jobs("ann")
    jobs.add(a_job(), owner="p1", lease_until=5.0)
    jobs.renew("p1", 50.0)
    assert jobs.claim("p2", now=6.0, lease_until=9.0) == []
    jobs.save(a_job(status="cancelled"), owner="p1")
    assert jobs.claim("p2", now=60.0, lease_until=90.0) == []


def test_messages_reach_the_owner_once_and_in_order(store: Store):
    jobs = store.jobs("ann")
    jobs.add(a_job(), owner="p1", lease_until=5.0)
    said = [JobMessage(job="j1", kind="answer", content={"n": 1}), JobMessage(job="j1", kind="cancel")]
    assert [jobs.tell(message) for message in said] == [True, True]
    assert jobs.renew("p2", 6.0) == []
    assert jobs.renew("p1", 6.0) == said
    assert jobs.renew("p1", 7.0) == []
    assert not jobs.tell(JobMessage(job="j2", kind="cancel"))
    jobs.save(a_job(status="failed"), owner="p1")
    assert not jobs.tell(JobMessage(job="j1", kind="cancel"))


def test_calls_are_written_by_the_owner_alone_and_completed(store: Store):
    jobs = store.jobs("ann")
    jobs.add(a_job(), owner="p1", lease_until=5.0)
    assert not jobs.begin_call("j1", a_call(), owner="p2")
    assert jobs.begin_call("j1", a_call(), owner="p1")
    assert jobs.begin_call("j1", a_call(number=1, items=(2,)), owner="p1")
    jobs.end_call("j1", a_call(outcome={"a": 1}, is_answered=True))
    assert jobs.calls("j1") == [a_call(outcome={"a": 1}, is_answered=True), a_call(number=1, items=(2,))]


def test_an_ended_job_is_forgotten_after_its_time_with_its_calls(store: Store):
    jobs = store.jobs("ann")
    jobs.add(a_job(), owner="p1", lease_until=5.0)
    jobs.begin_call("j1", a_call(), owner="p1")
    assert jobs.forget(now=1_000.0) == 0
    jobs.save(a_job(status="completed", updated_at=20.0), owner="p1")
    assert jobs.forget(now=29.0) == 0
    assert jobs.forget(now=31.0) == 1
    assert (jobs.job("j1"), jobs.calls("j1"), jobs.jobs(5)) == (None, [], [])


def test_no_principal_sees_or_touches_the_jobs_and_approvals_of_another(store: Store):
    ann, bob = store.jobs("ann"), store.jobs("bob")
    ann.add(a_job(), owner="p1", lease_until=5.0)
    ann.begin_call("j1", a_call(), owner="p1")
    assert (bob.job("j1"), bob.jobs(5), bob.calls("j1")) == (None, [], [])
    assert not bob.save(a_job(status="failed"), owner="p1")
    assert not bob.tell(JobMessage(job="j1", kind="cancel"))
    assert not bob.begin_call("j1", a_call(number=7), owner="p1")
    bob.release("p1")
    assert bob.claim("p2", now=99.0, lease_until=100.0) == []
    assert bob.renew("p1", 100.0) == []
    assert ann.job("j1") == a_job()
    approval = Approval.of(SEND, None, "sha256:c", 1.0)
    store.approvals("ann").add(approval)
    assert store.approvals("bob").approvals() == []
    assert not store.approvals("bob").revoke(approval.id)
    assert store.approvals("ann").approvals() == [approval]


def test_jobs_outlive_the_process(tmp_path: Path):
    first = open_sqlite_store(tmp_path / "s.db")
    first.jobs("ann").add(a_job(), owner="p1", lease_until=5.0)
    first.jobs("ann").begin_call("j1", a_call(), owner="p1")
    first.close()
    second = open_sqlite_store(tmp_path / "s.db")
    assert second.jobs("ann").claim("p2", now=6.0, lease_until=9.0) == [a_job()]
    assert second.jobs("ann").calls("j1") == [a_call()]
    second.close()


def test_an_approval_is_kept_listed_and_revoked(store: Store):
    approvals = store.approvals("ann")
    first, second = Approval.of(SEND, None, "", 1.0), Approval.of(SEND, {"to": "*@x.org"}, "", 1.0)
    for approval in (first, second, first.model_copy(update={"given_at": 2.0})):
        approvals.add(approval)
    assert {kept.given_at for kept in approvals.approvals()} == {1.0, 2.0}
    assert approvals.revoke(first.id)
    assert not approvals.revoke(first.id)
    assert approvals.approvals() == [second]


@pytest.mark.parametrize(
    ("patterns", "arguments", "covers"),
    [
        pytest.param(None, {"to": "a", "n": 1}, True, id="any-arguments"),
        pytest.param({"to": "*@x.org"}, {"to": "ann@x.org"}, True, id="glob"),
        pytest.param({"to": "*@x.org"}, {"to": "ann@y.org"}, False, id="glob-does-not-fit"),
        pytest.param({"to": "*"}, {"to": "a", "bcc": "b"}, False, id="an-argument-that-was-not-named"),
        pytest.param({"to": "*", "n": 1}, {"to": "a"}, False, id="a-named-argument-is-missing"),
        pytest.param({"n": 1}, {"n": 1.0}, True, id="equal-numbers"),
        pytest.param({"n": 1}, {"n": True}, False, id="a-boolean-is-no-number"),
        pytest.param({"n": 1}, {"n": "1"}, False, id="a-text-is-no-number"),
        pytest.param({"o": {"a": [1]}}, {"o": {"a": [1]}}, True, id="whole-values"),
        pytest.param({"o": {"a": "*"}}, {"o": {"a": "x"}}, False, id="no-pattern-inside-values"),
    ],
)
def test_an_approval_covers_calls_whose_arguments_fit(patterns, arguments, covers: bool):
    approval = Approval.of(SEND, patterns, "sha256:c", 1.0)
    assert (approval_for([approval], SEND, arguments, "sha256:c") is not None) == covers
    assert approval_for([approval], ToolId("mail", "drop"), arguments, "sha256:c") is None
    assert approval_for([approval], SEND, arguments, "sha256:changed") is None


@pytest.mark.parametrize("text", ["*", "a?b", "[x]", "plain", ""])
def test_an_exact_pattern_fits_its_own_arguments_and_no_others(text: str):
    approval: Callable[[str], bool] = lambda said: (  # noqa: E731
        Approval.of(SEND, exact_pattern({"t": text}), "", 1.0).covers(SEND, {"t": said}, "")
    )
    assert approval(text)
    assert not approval(f"{text}z")
    assert not approval("axb")
