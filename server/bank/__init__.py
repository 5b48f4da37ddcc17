"""The use cases: what a person, a client or a benchmark can ask of the bank."""

from __future__ import annotations

from server.bank.bank import Bank
from server.bank.context import Context
from server.bank.publishing import PublishedSkill

__all__ = ["Bank", "Context", "PublishedSkill"]
