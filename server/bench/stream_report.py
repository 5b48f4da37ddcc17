"""What the stream benchmark found, as values: streams by condition, trials of harm and drift, the curve.

Putting it into words is `stream_table`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from server.bench.stream_foreign_report import ForeignReport
from server.bench.suppression import SuppressionReport

__all__ = [
    "ChangedReport",
    "FrozenReport",
    "FrozenWay",
    "HardReport",
    "NoiseReport",
    "Pair",
    "PlannerRuns",
    "PlantedReport",
    "StreamBenchReport",
    "StreamRun",
    "StreamsReport",
]


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class StreamRun(_Report):
    """What one condition came to."""

    condition: str
    tasks: int
    right: int
    """By Python's answer, labels aside."""
    direct: int
    """Tasks for which a skill was run before anything was planned."""
    direct_right: int
    """Those of them whose skill answered right by itself; what a plan mended afterwards is not counted."""
    late_direct: int
    """Direct hits in the second half of the stream: the steady state."""
    late_tasks: int
    withheld: int
    """Tasks that did without their skill on purpose."""
    tokens: int
    """Of the planner; 0 where no model plans."""
    late_tokens: int
    """The same in the second half."""
    calls: int
    """Of tools, for answers; replays of admission and audits are not counted."""
    seconds: float
    """Learning included."""
    bank: tuple[int, ...]
    """Active skills after each quarter of the stream."""
    wrong: dict[str, int] = Field(default_factory=dict[str, int])
    """Tasks that were not answered right, by family."""
    wrong_direct: tuple[str, ...] = ()
    """Tasks that a skill answered wrong by itself, in their words; the first few."""


class Pair(_Report):
    """Two conditions task by task: McNemar's exact test."""

    one: str
    two: str
    only_one: int
    """Tasks that only the first got right."""
    only_two: int
    p: float


class PlannerRuns(_Report):
    """The conditions under one planner."""

    planner: str
    simulated: bool = False
    runs: tuple[StreamRun, ...]
    pairs: tuple[Pair, ...]

    def run(self, condition: str) -> StreamRun | None:
        """Return one condition's run, None where it was not made."""
        return next((run for run in self.runs if run.condition == condition), None)


class NoiseReport(_Report):
    """Label noise beside the clean stream, on the tasks whose labels were true in both."""

    share: float
    tasks: int
    right: int
    right_without_noise: int

    @property
    def points(self) -> float:
        """What noise costs, in percentage points."""
        return 100 * (self.right_without_noise - self.right) / self.tasks if self.tasks else 0.0


class FrozenWay(_Report):
    """Held-out instances solved in one way by a bank that learns nothing more, without any check."""

    way: str
    right: int
    tokens: int
    calls: int
    open: int
    """Instances for which the way was open: a skill was there to run, or to start from."""


class FrozenReport(_Report):
    """Grow on the first half, freeze, and solve held-out instances in several ways."""

    planner: str
    grown_on: int
    held_out: int
    ways: tuple[FrozenWay, ...]


class PlantedReport(_Report):
    """A harmful skill among the right ones: its tests are right, its answer is that of another task."""

    streams: int
    restricted: int
    guided_uses: tuple[int, ...]
    """Trials with it, until it was restricted, by stream; -1: it was not, within the stream."""
    restricted_within_14: int
    answered_right: int
    answered: int


class ChangedReport(_Report):
    """A tool that renames an argument in mid-stream, under skills that use it."""

    before: int
    """Tasks before the change, with what follows in each phase."""
    before_right: int
    unseen: int
    """Tasks after the change and before an operator looked at the tool."""
    unseen_right: int
    unseen_direct: int
    """Direct hits of a skill that calls the changed tool meanwhile; each is a call nobody vouched for."""
    stale: tuple[str, ...]
    """Skills that were stale when the change was noticed."""
    after: int
    """Tasks after the operator looked."""
    after_right: int
    after_direct: int
    until_direct: int | None
    """Tasks of the changed tool until the first direct hit; None: there was none."""
    recovered: tuple[str, ...]
    """How each stale skill came back, or why not."""
    wrong_direct: int
    """Wrong answers that a skill gave after the change."""


class HardReport(_Report):
    """The harder stream: what is shown by a client, what is asked with a check and without one."""

    shown: int
    """Tasks that a client worked out; they are in no count of the conditions."""
    asked: int
    checked: int
    """Asked tasks that came with their check."""
    families: tuple[str, ...]
    planners: tuple[PlannerRuns, ...]


class StreamsReport(_Report):
    """Streams over real servers."""

    seed: int
    length: int
    families: tuple[str, ...]
    servers: tuple[str, ...]
    planners: tuple[PlannerRuns, ...]
    noise: NoiseReport | None = None
    hard: HardReport | None = None
    frozen: tuple[FrozenReport, ...] = ()
    planted: PlantedReport | None = None
    changed: ChangedReport | None = None
    not_measured: tuple[str, ...] = ()


class StreamBenchReport(_Report):
    """Answer of `bench stream`."""

    bench: Literal["stream"] = "stream"
    quick: bool
    versions: dict[str, str] = Field(default_factory=dict[str, str])
    suppression: SuppressionReport | None = None
    """Simulated. None where it was not asked for."""
    streams: StreamsReport | None = None
    """Over real servers. None where it was not asked for."""
    foreign: ForeignReport | None = None
    """Over worlds of others. None where it was not asked for."""
    seconds: float = 0.0
