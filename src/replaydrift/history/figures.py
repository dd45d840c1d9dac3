"""Numbers for asv, which draws nothing else: what is drawn of one case on one release, and how verdicts become numbers.

asv's language is finite numbers, None for "failed" and NaN for "skipped". It reports rises only, so what is drawn as news is
one number that rises: 1 where the verdict differs from the baseline's. Whether anything changed is for `replaydrift check`.
"""

from __future__ import annotations

import math
import statistics
import sys
from typing import Final, NamedTuple

from replaydrift.records import CaseRecord, Environment
from replaydrift.verdicts import settled, summarise

# The code of a verdict, for display alone: higher is worse, and none is 0, from which asv calls every step infinite.
CODES: Final = {
    "holds": 1,
    "not reproduced": 2,
    "loud": 3,
    "reproduced": 4,
    "raises": 5,
    "hangs": 6,
    "crashes": 7,
    "fails": 8,
    "flaky": 9,
}
FAILED: Final = None
SKIPPED: Final = math.nan
_BROKEN: Final = frozenset({"broken", "missing"})
_FINISHED: Final = frozenset({"correct", "wrong"})


class Figures(NamedTuple):
    """What asv is told of one case on one release of one machine."""

    version: str
    verdict: str
    capture_ms: float | None = None

    @property
    def states(self) -> bool:
        """True where the verdict says something about torch; a skipped, broken or flaky case does not."""
        return self.verdict in CODES and self.verdict != "flaky"


def figures_of(record: CaseRecord, environment: Environment) -> Figures:
    """The figures of one record. Only a GPU's times are taken: those of the CPU model are of a clock that it makes up."""
    capture = _capture_ms(record) if environment.engine == "cuda" else None
    return Figures(sys.intern(record.version), summarise(record).verdict, capture)


def differs(figures: Figures, base: str | None) -> float | None:
    """1 where the verdict is not `base`, 0 where it is; NaN where the case was skipped or flaky, None where it broke."""
    if figures.verdict in _BROKEN:
        return FAILED
    return int(figures.verdict != base) if figures.states else SKIPPED


def code(figures: Figures) -> float | None:
    """The code of the verdict; NaN where the case was skipped, None where it broke."""
    return FAILED if figures.verdict in _BROKEN else CODES.get(figures.verdict, SKIPPED)


def _capture_ms(record: CaseRecord) -> float | None:
    """The median over the attempts that came to an end: each had a process of its own."""
    times = [attempt.capture_ms for attempt in settled(record.attempts) if attempt.outcome.kind in _FINISHED]
    measured = [time for time in times if time is not None and math.isfinite(time)]
    return statistics.median(measured) if measured else None
