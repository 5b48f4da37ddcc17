"""Edits that a model proposes: one conversation of at most two turns for one parent.

Paper: EvoFlux (mutate, exploit: one edit of a model per child). Differs: up to three edits, read in
full and checked before anything is built; what is wrong with them is told once, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from server.backends.backend import Message, Request
from server.backends.errors import BackendError
from server.evolution.building import edited
from server.evolution.edit_prompt import EditPrompt, Known, edit_prompt, edit_schema
from server.evolution.edit_reading import EditReading, read_edits
from server.evolution.evaluate import Evaluator
from server.evolution.options import SearchOptions
from server.evolution.proposal import Proposal
from server.evolution.proposer import Asked, Offer
from server.evolution.soundness import brought_faults
from server.planning.conversation import Conversation, MeteredBackend, converse
from server.planning.view import View
from skills_store.workflow.edits import EditRefused

__all__ = ["ModelProposer", "edit_conversation"]

_TURNS = 2
_COST = 1.0
_TEMPERATURE = 0.2
"""The paper's for edits."""


@dataclass
class ModelProposer:
    """Asks a model, in the role of editor, what to change."""

    model: MeteredBackend
    """With the budget of tokens as its limit."""
    evaluator: Evaluator
    options: SearchOptions
    deadline_seconds: float = 120.0
    name: str = "model"
    given_up: str | None = None
    """Why the model is not asked any more; None while it answers."""

    async def propose(self, asked: Asked) -> Offer:
        """Return the model's edits as one proposal, then each alone; empty where it could not answer."""
        if self.given_up is not None:
            return Offer(problems=(self.given_up,))
        before = self.model.usage.total
        budget = self.options.prompt_tokens
        if self.model.context_tokens is not None:
            budget = min(budget, self.model.context_tokens - self.options.answer_tokens)
        view, redact = asked.view, self.evaluator.options.redact
        try:
            told = self.evaluator.hints.texts(view) if self.evaluator.hints is not None else ()
            known = Known(asked.tabu, told)
            prompt = await edit_prompt(view, known, self.model.count_tokens, budget, redact)
            request = Request(
                messages=prompt.messages,
                schema=edit_schema(view, prompt.tools),
                schema_name="edits",
                temperature=_TEMPERATURE,
                seed=asked.draw.randrange(2**31),
                max_output_tokens=self.options.answer_tokens,
                deadline_seconds=self.deadline_seconds,
                experience=prompt.experience,
            )
            reading = await converse(self.model, edit_conversation(request, view, prompt))
        except BackendError as error:
            self.given_up = str(error)
            return Offer(tokens=self.model.usage.total - before, problems=(str(error),), failure=str(error))
        return Offer(_proposals(reading), self.model.usage.total - before, reading.problems)


def _proposals(reading: EditReading) -> Sequence[Proposal]:
    whole = [Proposal(reading.edits, _COST)] if reading.edits else []
    single = [Proposal((edit,), _COST) for edit in reading.edits] if len(reading.edits) > 1 else []
    return [*whole, *single]


def edit_conversation(request: Request, view: View, prompt: EditPrompt) -> Conversation[EditReading]:
    """Ask for edits, and once more when there are none that can be made, or they bring new faults.

    Args:
        request: the first turn.
        view: of the workflow that is edited.
        prompt: what the request says, with the names in it.
    """
    reading = EditReading(())
    for turn in range(_TURNS):
        completion = yield request
        reading = read_edits(completion.text, view, prompt.tools)
        none = () if reading.edits or reading.problems else ("there is no edit in it",)
        wrong = (*reading.problems, *none, *_brought(reading, view))
        reading = replace(reading, problems=wrong)
        if not wrong or turn == _TURNS - 1:
            break
        said = "\n".join(f"- {problem}" for problem in wrong[:4])
        reproach = f"That cannot be done:\n{said}\nAnswer with corrected edits, all of them."
        messages = (
            *request.messages,
            Message("assistant", completion.text or "{}"),
            Message("user", reproach),
        )
        request = replace(request, messages=messages)
    return reading


def _brought(reading: EditReading, view: View) -> list[str]:
    """Return what the edits bring that was not wrong before."""
    try:
        after = edited(view.workflow, reading.edits)
    except EditRefused as error:
        return [str(error)]
    return [fault.message for fault in brought_faults(view.workflow, after, view.world.snapshot)]
