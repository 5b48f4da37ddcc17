"""What all reports share: frozen, and no key that is not written down."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Report"]


class Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
