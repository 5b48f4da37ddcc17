"""What went wrong, as a person or a program reading `--json` is told: kind, message, exit code.

Exit codes: `CONTRACTS`, Statuses and exits. What a run came to is a report and no error.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from catalog.errors import (
    CatalogError,
    ConfigError,
    LoginFailed,
    NeedsLogin,
    SchemaRejected,
    SecretsUnusable,
    ServerUnavailable,
)
from catalog.plain_text import plain_text
from server.bench.errors import BenchError
from server.models.errors import ModelError, NotFetched, SourceUnusable, UnknownModel
from server.provisioning.errors import ProvisioningError
from server.reports import ErrorDetail, ErrorReport
from skills_store.errors import (
    IllegalTransition,
    MalformedWorkflow,
    NotImportable,
    SkillInUse,
    StoreError,
    StoreUnusable,
    UnknownSkill,
    VersionConflict,
)

__all__ = ["CANCELLED", "Failure", "NeedsApproval", "failure_of"]

FAILED, MISUSE, NEEDS_APPROVAL, WORLD, INTERRUPTED = 1, 2, 3, 4, 130


class NeedsApproval(Exception):  # noqa: N818
    """A person has not said yes, and nothing was changed; the message says how to say it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command was not carried out."""

    kind: str
    message: str
    exit_code: int
    pointer: str | None = None

    def to_report(self) -> ErrorReport:
        """Return it under the stable keys."""
        return ErrorReport(error=ErrorDetail(kind=self.kind, message=self.message, pointer=self.pointer))


CANCELLED = Failure("cancelled", "interrupted", INTERRUPTED)


def failure_of(error: BaseException) -> Failure | None:
    """Return what to tell of an error, or None when it is a defect of ours."""
    match error:
        case BaseExceptionGroup():
            found = [failure_of(inner) for inner in error.exceptions]
            return found[0] if all(found) and found else None
        case KeyboardInterrupt() | click.Abort():
            return CANCELLED
        case click.ClickException():
            return Failure("misuse", error.format_message(), MISUSE)
        case NeedsApproval():
            return Failure("needs_approval", plain_text(str(error)), NEEDS_APPROVAL)
        case CatalogError() | StoreError() | BenchError() | ProvisioningError():
            return _typed(error)
        case ModelError():
            return _of_models(error)
        case _:
            return _of_bank(error)


def _of_models(error: ModelError) -> Failure:
    message = plain_text(str(error))
    match error:
        case UnknownModel():
            return Failure("unknown_model", message, MISUSE)
        case NotFetched():
            return Failure("not_fetched", message, FAILED)
        case SourceUnusable():
            return Failure("source_unusable", message, WORLD)
        case ModelError():
            return Failure("model", message, FAILED)


def _of_bank(error: BaseException) -> Failure | None:
    from server.backends.errors import (
        BackendError,
        BackendOverloaded,
        BackendTimeout,
        BackendUnavailable,
        ContextTooLong,
    )
    from server.bank.errors import BankError, SkillNotCallable
    from server.evolution.errors import RecordError
    from server.exploration.errors import ExplorationError
    from server.training.errors import TrainingError

    match error:
        case BackendUnavailable() | BackendOverloaded() | BackendTimeout():
            return Failure("model_unavailable", plain_text(str(error)), WORLD)
        case ContextTooLong():
            return Failure("context_too_long", plain_text(str(error)), FAILED)
        case BackendError():
            return Failure("model_unusable", plain_text(str(error)), MISUSE)
        case SkillNotCallable():
            return Failure("skill_not_callable", plain_text(str(error)), FAILED)
        case RecordError():
            return Failure("record", plain_text(str(error)), MISUSE)
        case ExplorationError():
            return Failure("not_explored", plain_text(str(error)), MISUSE)
        case TrainingError():
            return Failure("training", plain_text(str(error)), MISUSE)
        case BankError():
            return Failure("refused", plain_text(str(error)), FAILED)
        case _:
            return None


def _typed(error: CatalogError | StoreError | BenchError | ProvisioningError) -> Failure:
    message = plain_text(str(error))
    match error:
        case ConfigError():
            return Failure("invalid_config", message, MISUSE)
        case SchemaRejected():
            return Failure("schema_rejected", message, MISUSE)
        case UnknownSkill():
            return Failure("unknown_skill", message, MISUSE)
        case IllegalTransition():
            return Failure("illegal_transition", message, MISUSE)
        case MalformedWorkflow():
            return Failure("malformed", message, FAILED, error.faults[0].pointer if error.faults else None)
        case NotImportable():
            return Failure("not_importable", message, FAILED)
        case SkillInUse():
            return Failure("skill_in_use", message, FAILED)
        case VersionConflict():
            return Failure("version_conflict", message, FAILED)
        case StoreUnusable():
            return Failure("store_unusable", message, FAILED)
        case NeedsLogin():
            return Failure("needs_login", message, NEEDS_APPROVAL)
        case ServerUnavailable():
            return Failure("server_unavailable", message, WORLD)
        case LoginFailed():
            return Failure("login_failed", message, FAILED)
        case SecretsUnusable():
            return Failure("secrets_unusable", message, FAILED)
        case BenchError() | ProvisioningError():
            return Failure("bench", message, MISUSE)
        case CatalogError() | StoreError():
            return Failure("failed", message, FAILED)
