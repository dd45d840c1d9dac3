"""What became of each cost between two releases, and what that comes to: plain data, decided in `gate`, printed in `report`."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p
from typing import TYPE_CHECKING, Final, Literal

from replaydrift.costs.metrics import METRICS

if TYPE_CHECKING:  # It brings scipy, and a check without costs has no need of it.
    from replaydrift.costs.statistics import Comparison

Answer = Literal["changed", "same", "cannot-tell", "missing", "not-comparable"]

# The order of a list of costs.
ANSWERS: Final = ("changed", "cannot-tell", "missing", "not-comparable", "same")


@dataclass(frozen=True, slots=True)
class CostFinding:
    """What became of one metric of one subject; `why` is a sentence where no numbers say it.

    `before` and `after` are counts, or geometric means over processes, whose ratio is that of `comparison`.
    `adjusted` is the p-value after the correction of its family, `smallest` the change that would have been found (0.03: 3 %).
    """

    subject: str
    metric: str
    answer: Answer
    headline: bool
    why: str = ""
    before: float | None = None
    after: float | None = None
    comparison: Comparison | None = None
    adjusted: float | None = None
    smallest: float | None = None

    @property
    def name(self) -> str:
        """Subject and metric: `chain/1000 replay_gpu_us`."""
        return f"{self.subject} {self.metric}"

    @property
    def exact(self) -> bool:
        """True for a count."""
        return METRICS[self.metric].exact

    @property
    def gates(self) -> bool:
        """True for a change that a person must explain: of the gate, or of a count."""
        return self.answer == "changed" and (self.headline or self.exact)

    @property
    def undecided(self) -> bool:
        """True for a metric of the gate about which nothing can be said."""
        return self.headline and self.answer not in ("changed", "same")

    @property
    def direction(self) -> str:
        """`more` or `less`, of what changed."""
        if self.comparison is not None:
            return self.comparison.direction
        return "more" if (self.after or 0) > (self.before or 0) else "less"

    @property
    def rank(self) -> tuple[int, bool, float, str]:
        """Sort key: what changed first, the gate before the list, the largest change measured in margins before the others."""
        size = 0.0
        if self.comparison is not None:
            size = abs(log(self.comparison.ratio)) / max(log1p(self.comparison.margin), 1e-3)
        return ANSWERS.index(self.answer), not (self.headline or self.exact), -size, self.name


@dataclass(frozen=True)
class CostCheck:
    """The costs of `old` and `new` side by side. `problem` says what keeps times from being compared at all, and is empty else.

    `family` is the number of times that the gate compared, `pending` that of visits which the block still lacks. `asked` is false
    where the gate asks about nothing that was measured, so that a problem is none of its.
    """

    old: str
    new: str
    block: str
    findings: tuple[CostFinding, ...]
    processes: tuple[int, int] = (0, 0)
    toolkits: tuple[str, str] = ("", "")
    family: int = 0
    pending: int = 0
    problem: str = ""
    asked: bool = True

    @property
    def news(self) -> tuple[CostFinding, ...]:
        """What changed and must be explained."""
        return tuple(finding for finding in self.findings if finding.gates)

    @property
    def undecided(self) -> tuple[CostFinding, ...]:
        """What the gate asks about and nothing can be said of."""
        return tuple(finding for finding in self.findings if finding.undecided)

    @property
    def cannot_tell(self) -> bool:
        """True where the gate has no answer to something it asks."""
        return bool((self.problem and self.asked) or self.undecided)

    @property
    def same(self) -> int:
        """How many metrics are shown to be the same."""
        return sum(finding.answer == "same" for finding in self.findings)
