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
from server.progress import Progress
from skills_store.skill import Skill

__all__ = ["Worded", "word_skill"]

_WORDED_STATES = ("active", "proposed", "context_only")


@dataclass(frozen=True, slots=True)
class Worded:
    """A skill in the best words there are."""

    skill: Skill
    problem: str = ""
    """Why a model that was asked improved nothing; empty where it did, or none was asked."""


async def word_skill(skill: Skill, context: Context, *, is_name_free: bool) -> Worded:
    """Return a skill with words of the model that plays the editor, where there is one.

    A skill that a person wrote, and one that failed a gate, are returned as they are; so is the
    description that a workflow brought with it.

    Args:
        skill: as it would be kept, in rendered words.
        context: the bank.
        is_name_free: whether nobody chose its name, which then may change too.
    """
    spec = context.models.spec("editor")
    if spec.kind == "none" or skill.origin == "user" or skill.state not in _WORDED_STATES:
        return Worded(skill)
    context.progress(Progress("admit", f"asking {spec} for better words for {skill.name}"))
    facts = facts_of(skill.workflow, skill.signature, skill.provenance.task)
    try:
        backend = await context.models.backend("editor")
        if backend is None:
            return Worded(skill)
        words = read_words((await backend.complete(words_request(facts))).text, facts)
    except (BackendError, WordsRefused) as error:
        problem = f"its words are rendered, since {spec} gave none: {error}"
        context.progress(Progress("admit", problem))
        return Worded(skill, problem)
    return Worded(_in_words(skill, words, backend.name, context, is_name_free=is_name_free))


def _in_words(skill: Skill, words: Words, model: str, context: Context, *, is_name_free: bool) -> Skill:
    is_renamed = is_name_free and bool(words.name) and context.store.head(words.name) is None
    name = words.name if is_renamed else skill.name
    is_described = bool(skill.workflow.description)
    return skill.model_copy(
        update={
            "name": name,
            "title": name.replace("_", " ").capitalize() if is_renamed else skill.title,
            "workflow": skill.workflow.model_copy(update={"name": name}),
            "description": skill.description if is_described else words.described(skill.description),
            "guidance": words.guided(skill.guidance),
            "provenance": skill.provenance.model_copy(update={"worded_by": model}),
        }
    )
