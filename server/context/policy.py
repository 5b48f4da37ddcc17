"""Context templates: what of the log is shown, by name, and the bounds they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["TEMPLATES", "ContextPolicy", "Template"]

Template = Literal["causal", "reasoned", "window", "self"]
TEMPLATES: tuple[Template, ...] = get_args(Template)
"""BCT, RAT, SWT and SCMT of the paper."""


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """How a log becomes messages.

    Paper: AgentEvolver (facts §4.5). Differs: `window` clears tool results instead of dropping rounds, keeps
    every error and the plan, and leaves a name by which a result can be read again; `self` may tidy up more
    than once.
    """

    template: Template = "window"
    budget_tokens: int = 6_000
    """Of the prompt: the model's context less its answer."""
    trigger: float = 0.6
    """Part of the budget from which `window` and `self` begin to clear."""
    keep: int = 3
    """Newest results that are always shown whole. Source: interop facts §3, for 4 to 8 k contexts."""
    clear_at_least: int = 100
    """Tokens that clearing a result must gain, else it stays: each rewrite costs the prompt cache."""
    summaries: bool = False
    """Whether `window` says in one line which calls it left out, once stubs are not enough."""

    def __post_init__(self) -> None:
        if self.budget_tokens < 1 or self.keep < 0 or self.clear_at_least < 0:
            raise ValueError("budget_tokens is at least 1, keep and clear_at_least at least 0")
        if not 0 < self.trigger <= 1:
            raise ValueError("trigger is above 0 and at most 1")
