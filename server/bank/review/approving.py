"""Remembered approvals: kept at a person's word, listed beside the operator's own, revoked."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from catalog.tools import ToolId
from server.bank.context import Context
from server.bank.errors import NotDecided
from server.execution.consent import ConsentQuestion
from server.reports import ApprovalReport, ApprovalsReport
from skills_store.approvals import Approval, exact_pattern

__all__ = ["approve", "list_approvals", "remember", "revoke"]


def remember(question: ConsentQuestion, context: Context, *, exact: bool) -> None:
    """Keep a person's word on a call, of these arguments alone where `exact`.

    Arguments that hold a secret are not kept, so the word then counts for nothing but this call.
    """
    patterns = exact_pattern(question.arguments) if exact else None
    if patterns is None or context.redact(patterns) == patterns:
        approve(question.tool, patterns, context)


def approve(tool: ToolId, arguments: Mapping[str, JsonValue] | None, context: Context) -> Approval:
    """Keep an approval of a tool as it is now.

    Args:
        tool: which.
        arguments: patterns that the arguments must fit; None: whatever they are.
        context: the bank.
    """
    known = context.known().get(tool)
    contract = "" if known is None else known.contract_hash
    approval = Approval.of(tool, arguments, contract, context.clock())
    context.store.approvals(context.principal).add(approval)
    return approval


def list_approvals(context: Context) -> ApprovalsReport:
    """Return every standing consent: what the configuration allows, then what people said."""
    allowed = [
        ApprovalReport(id=f"{server}/{pattern}", server=server, tool=pattern, source="configuration")
        for server, patterns in sorted(context.config.effects.allow.items())
        for pattern in patterns
    ]
    known = context.known()
    remembered: list[ApprovalReport] = []
    for approval in context.store.approvals(context.principal).approvals():
        tool = known.get(approval.tool)
        changed = tool is not None and approval.contract_hash not in ("", tool.contract_hash)
        remembered.append(
            ApprovalReport(
                id=approval.id,
                server=approval.tool.server,
                tool=approval.tool.tool,
                arguments=approval.arguments,
                source="remembered",
                given_at=approval.given_at,
                holds=not changed,
            )
        )
    return ApprovalsReport(approvals=(*allowed, *remembered))


def revoke(approval_id: str, context: Context) -> None:
    """Forget a remembered approval.

    Raises:
        NotDecided: there is none of this id; names those there are.
    """
    if not context.store.approvals(context.principal).revoke(approval_id):
        kept = context.store.approvals(context.principal).approvals()
        known = ", ".join(approval.id for approval in kept) or "none"
        raise NotDecided(f"no approval {approval_id!r} is remembered; there are: {known}")
