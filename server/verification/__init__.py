"""Says whether a run did what was asked: by assertion, schema or postcondition."""

from server.verification.verdict import Checks, Verdict, verify

__all__ = ["Checks", "Verdict", "verify"]
