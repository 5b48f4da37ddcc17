"""Asking a model for better words for a skill on its way into the store.

What it is shown and what is taken of its answer is `server.compilation.wording`. Without a model, or
where it gives nothing usable, the rendered text stays, and the second is said. What a person wrote
stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from server.backends.errors import BackendError
from server.bank.context import Context
from server.compilation.wording import Words, WordsRefused, facts_of, read_words, words_request
from server.planning.conversation import MeteredBackend
from server.progress import Progress
from skills_store.skill import Skill, SkillWords

__all__ = ["Reworded", "Worded", "word_skill", "words_when_active"]


@dataclass(frozen=True, slots=True)
class Worded:
    """A skill in the best words there are."""

    skill: Skill
    problem: str = ""
    """Why a model that was asked improved nothing; empty where it did, or none was asked."""
    tokens: int = 0
    """Spent on it."""


@dataclass(frozen=True, slots=True)
class Reworded:
    """Words for a version that is kept, None where it keeps those it has."""

    words: SkillWords | None
    problem: str = ""
    """Why a model that was asked found none; empty where it did, or none was asked."""
    tokens: int = 0
    """Spent on it."""


async def word_skill(skill: Skill, context: Context, tokens: int | None = None) -> Worded:
    """Return a skill that a small model is about to see with words of the one that plays the editor.

    A skill that a person wrote, that is not active, or that a model has worded is returned as it is.
    The name stays, which others refer to; so do the title of a skill that a person named, and the
    description that a workflow brought with it.

    Args:
        skill: as it would be kept, in rendered words.
        context: the bank.
        tokens: what may be spent; None: any number, 0: nobody is asked.
    """
    spec = context.models.spec("editor")
    is_settled = skill.origin == "user" or skill.provenance.worded_by is not None
    if spec.kind == "none" or tokens == 0 or is_settled or skill.state != "active":
        return Worded(skill)
    context.progress(Progress("admit", f"asking {spec} for better words for {skill.name}"))
    facts = facts_of(skill.workflow, skill.signature, skill.provenance.task)
    spent = 0
    try:
        backend = await context.models.backend("editor")
        if backend is None:
            return Worded(skill)
        model = MeteredBackend(backend, tokens)
        completion = await model.complete(words_request(facts))
        spent = model.usage.total
        words = read_words(completion.text, facts)
    except (BackendError, WordsRefused) as error:
        problem = f"its words are rendered, since {spec} gave none: {error}"
        context.progress(Progress("admit", problem))
        return Worded(skill, problem, spent)
    return Worded(_in_words(skill, words, backend.name), tokens=spent)


async def words_when_active(skill: Skill, context: Context, tokens: int | None = None) -> Reworded:
    """Return the words that a version which waited is published with, now that it becomes active.

    Args:
        skill: as it is kept, not active yet.
        context: the bank.
        tokens: what may be spent; None: any number, 0: nobody is asked.
    """
    worded = await word_skill(skill.model_copy(update={"state": "active"}), context, tokens)
    model = worded.skill.provenance.worded_by
    if model is None or model == skill.provenance.worded_by:
        return Reworded(None, worded.problem, worded.tokens)
    said = worded.skill
    words = SkillWords(
        title=said.title, description=said.description, guidance=said.guidance, worded_by=model
    )
    return Reworded(words, tokens=worded.tokens)


def _in_words(skill: Skill, words: Words, model: str) -> Skill:
    is_titled = bool(words.title) and not skill.provenance.explicit_save
    is_described = bool(skill.workflow.description)
    return skill.model_copy(
        update={
            "title": words.title if is_titled else skill.title,
            "description": skill.description if is_described else words.described(skill.description),
            "guidance": words.guided(skill.guidance),
            "provenance": skill.provenance.model_copy(update={"worded_by": model}),
        }
    )
