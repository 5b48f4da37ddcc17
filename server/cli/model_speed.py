"""How fast the local models are that play a role, for `doctor`."""

from __future__ import annotations

from collections.abc import Iterable

from server.cli.models import host_for
from server.cli.session import Session
from server.models.errors import ModelError
from server.models.runtime import Host
from server.reports import DoctorReport, LocalModelReport

__all__ = ["with_local_models"]

_KIND = "local:"


def with_local_models(session: Session, report: DoctorReport) -> DoctorReport:
    """Return a doctor's report with the usable local models measured; what ends one meanwhile is a problem.

    Nothing is started where no role is played by one.
    """
    usable = [model.model for model in report.models if model.usable]
    names = [model.removeprefix(_KIND) for model in usable if model.startswith(_KIND)]
    if not names:
        return report
    host = host_for(session)
    models, problems = session.run(lambda: _measure_all(host, names))
    return report.model_copy(
        update={"local_models": tuple(models), "problems": (*report.problems, *problems)}
    )


async def _measure_all(host: Host, names: Iterable[str]) -> tuple[list[LocalModelReport], list[str]]:
    models: list[LocalModelReport] = []
    problems: list[str] = []
    for name in names:  # one after another, since they share the processors
        try:
            models.append(await _measure(host, name))
        except ModelError as error:
            problems.append(f"{_KIND}{name}: {error}")
    return models, problems


async def _measure(host: Host, name: str) -> LocalModelReport:
    from server.models.serving import open_local_model
    from server.models.speed import measure_speed

    async with open_local_model(host, name) as lease:
        speed = await measure_speed(lease.url, lease.key)
    return LocalModelReport(
        name=name,
        url=lease.url,
        prompt_tokens_per_second=speed.prompt,
        generated_tokens_per_second=speed.generation,
        slots=lease.slots,
        context_tokens=lease.context_tokens,
        shared=lease.shared,
    )
