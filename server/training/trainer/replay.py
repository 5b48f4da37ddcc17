"""GRPO over recorded runs: advantages per token, and a raised upper clip for what experience led to.

TRL has no place for either, so this overrides two private methods of its trainer; `versions` says of which
releases. Paper: AgentEvolver (ADCA-GRPO, selective boosting `off_cliprange_high` 0.6 on positive
experience-guided samples; facts §4.4). Differs: the runs are recorded, so only updates after the first are
off the policy; old log-probabilities are the model's own over the stripped prompt, as veRL recomputes them.
"""

# torch and TRL are only in the Python that this runs in.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from trl import GRPOTrainer

from .tokens import Tokenised

__all__ = ["Recorded", "ReplayTrainer", "chunked", "rollout_of"]

Recorded = tuple[Tokenised, bool]
"""A run, and whether experience guided it."""


class ReplayTrainer(GRPOTrainer):
    """GRPO whose rollouts come with an advantage per token."""

    boost: float = 0.6
    """Upper clip of positive tokens in guided runs."""

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        out = super()._generate_and_score_completions(inputs)
        width = out["completion_ids"].shape[1]
        device = out["completion_ids"].device
        rows = [torch.tensor([*one["token_advantages"], *[0.0] * width][:width]) for one in inputs]
        out["advantages"] = torch.stack(rows).to(device)
        out["guided"] = torch.tensor([float(one["guided"]) for one in inputs], device=device)
        return out

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:  # noqa: ANN401
        plain = self.epsilon_low, self.epsilon_high
        raised = (inputs["guided"][:, None] > 0) & (inputs["advantages"] > 0)
        usual = torch.full_like(inputs["advantages"], float(plain[1]))
        # Both are tensors, since `torch.clamp` takes no number beside one.
        self.epsilon_low = torch.full_like(usual, float(plain[0]))
        self.epsilon_high = torch.where(raised, torch.full_like(usual, self.boost), usual)
        try:
            return super()._compute_loss(model, inputs)
        finally:
            self.epsilon_low, self.epsilon_high = plain


def chunked(runs: Sequence[Recorded], size: int) -> list[list[Recorded]]:
    """Return the runs in groups of one size; the last is filled up with runs of which nothing is learned.

    Which runs stand together does not matter: their advantages are known.
    """
    chunks = [list(runs[i : i + size]) for i in range(0, len(runs), size)]
    for chunk in chunks:
        while len(chunk) < size:
            filler, _ = chunk[0]
            nothing = Tokenised(
                filler.prompt, filler.completion, [0] * len(filler.mask), [0.0] * len(filler.mask)
            )
            chunk.append((nothing, False))
    return chunks


def rollout_of(chunks: Sequence[Sequence[Recorded]]) -> Any:  # noqa: ANN401
    """Return TRL's `rollout_func`, which plays back the chunk that a prompt is the number of."""

    def rollout(prompts: list[str], trainer: Any) -> Mapping[str, list[Any]]:  # noqa: ANN401
        del trainer
        counts: dict[str, int] = {}
        runs: list[Recorded] = []
        for prompt in prompts:
            chunk = chunks[int(prompt)]
            place = counts[prompt] = counts.get(prompt, -1) + 1
            runs.append(chunk[place % len(chunk)])
        return {
            "prompt_ids": [one.prompt for one, _ in runs],
            "completion_ids": [one.completion for one, _ in runs],
            "logprobs": [[0.0] * len(one.completion) for one, _ in runs],
            "env_mask": [one.mask for one, _ in runs],
            "token_advantages": [one.advantages for one, _ in runs],
            "guided": [guided for _, guided in runs],
        }

    return rollout
