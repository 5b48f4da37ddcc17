"""How the models are that play a role, for `doctor`: reachable, and what they offer."""

from __future__ import annotations

from catalog.config import ModelSpec
from catalog.config.models import ROLES, Role
from server.backends.errors import BackendError
from server.backends.roles import Models
from server.reports import ModelReport

__all__ = ["examine_models"]


async def examine_models(models: Models) -> tuple[ModelReport, ...]:
    """Look at each model that plays a role, without having anything generated that costs."""
    roles: dict[ModelSpec, list[Role]] = {}
    for role in ROLES:
        if (spec := models.spec(role)).kind != "none":
            roles.setdefault(spec, []).append(role)
    return tuple([await _examined(models, spec, played) for spec, played in roles.items()])


async def _examined(models: Models, spec: ModelSpec, played: list[Role]) -> ModelReport:
    if spec.kind == "sampling":
        lent = "the model of the MCP client, where it lends it; answers are validated only"
        return ModelReport(roles=tuple(played), model=str(spec), usable=True, offers=lent)
    try:
        offer = await (await models.open(spec)).examine()
    except BackendError as error:
        problem = str(error).removeprefix(f"{spec}: ")
        return ModelReport(roles=tuple(played), model=str(spec), usable=False, offers="", problem=problem)
    return ModelReport(
        roles=tuple(played),
        model=str(spec),
        usable=True,
        offers=f"{offer.constraint}: {offer.detail}",
        context_tokens=offer.context_tokens,
    )
