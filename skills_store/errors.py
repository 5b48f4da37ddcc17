"""The store's error tree.

StoreError
├── MalformedWorkflow     a document is no workflow; carries its faults
├── MalformedCode         a source text is no function that can be a skill
├── VersionConflict       the head moved between read and write
├── IllegalTransition     the lifecycle table has no such move
├── UnknownSkill          no skill or version of that name
├── SkillInUse            another skill calls it
└── StoreUnusable         the file cannot be opened: corrupt, locked out, or from a newer version
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skills_store.workflow.faults import Fault
    from skills_store.workflow.model import Workflow


class StoreError(Exception):
    """Anything wrong with what is stored or about to be."""


class MalformedWorkflow(StoreError):  # noqa: N818
    """A document that is no workflow; `faults` says where and why.

    Attributes:
        faults: one per problem.
        document: the parsed JSON, None when it is not even that.
        rest: the workflow that is left without its unknown fields, None when more is wrong.
    """

    def __init__(self, faults: list[Fault], document: object = None, rest: Workflow | None = None) -> None:
        super().__init__("; ".join(f"{fault.pointer or '/'}: {fault.message}" for fault in faults))
        self.faults = faults
        self.document = document
        self.rest = rest


class MalformedCode(StoreError):  # noqa: N818
    """A source text that is no function a skill can be made of; says where and what helps."""


class VersionConflict(StoreError):  # noqa: N818
    """The head of a skill moved between read and write."""


class IllegalTransition(StoreError):  # noqa: N818
    """The lifecycle table has no such move."""


class UnknownSkill(StoreError):  # noqa: N818
    """No skill, or no version of it, has that name."""


class SkillInUse(StoreError):  # noqa: N818
    """A skill that another one calls cannot be deleted."""


class StoreUnusable(StoreError):  # noqa: N818
    """The store cannot be opened; nothing in it was touched."""
