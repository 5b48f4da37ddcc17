"""What an engine's version means for skills made of code: verified and run in one and the same."""

from __future__ import annotations

from server.bank.context import Context
from server.execution.code import engine_problem
from skills_store.skill import Skill
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Node, Workflow

__all__ = ["changed_engines", "with_present_engines"]


def changed_engines(skill: Skill, context: Context) -> str | None:
    """Return which engine of a skill's code is another version now, None where none is.

    One that is not there at all changes nothing about the skill: its run says so.
    """
    present = with_present_engines(skill, context)
    if present.content_hash == skill.content_hash:
        return None
    codes = [node.code for node in skill.workflow if node.code is not None]
    found = [problem for code in codes if (problem := engine_problem(code, context.sandbox))]
    return "; ".join(dict.fromkeys(found))


def with_present_engines(skill: Skill, context: Context) -> Skill:
    """Return a skill with the versions of the engines that are here; to be verified before it is believed."""
    workflow = skill.workflow
    nodes = tuple(_present(node, context) for node in workflow.nodes)
    if nodes == workflow.nodes:
        return skill
    return _with(skill, workflow.model_copy(update={"nodes": nodes}))


def _present(node: Node, context: Context) -> Node:
    engine = context.sandbox.engine(node.code.engine) if node.code and context.sandbox else None
    if node.code is None or engine is None or not engine.is_there:
        return node
    code = node.code.model_copy(update={"engine_version": engine.version})
    return node.model_copy(update={"code": code})


def _with(skill: Skill, workflow: Workflow) -> Skill:
    hashes = {"content_hash": content_hash(workflow), "shape_hash": shape_hash(workflow)}
    return skill.model_copy(update={"workflow": workflow, **hashes})
