"""The chain of releases that asv sees as history: one step a version, oldest first, each with a date and a few facts.

It holds every release of the table and every one that the store has besides. So a commit's place and hash do not depend on
which releases were run, and a number that stepped between two distant releases is shown with the whole range between them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from replaydrift.releases import Release, Table, order

_DAY: Final = dt.timedelta(days=1)
# Where the very first release of the chain has no known date, there is none to count from; torch is younger than this.
_START: Final = dt.date(2000, 1, 1)
_NIGHTLY: Final = re.compile(r"\.dev(\d{4})(\d{2})(\d{2})$")


@dataclass(frozen=True, slots=True)
class Step:
    """One release of the chain; `cuda` is that of its default wheel, None where it is not known."""

    version: str
    date: dt.date
    dated: str  # a sentence: where the date comes from
    cuda: str | None = None

    @property
    def tag(self) -> str:
        """The name that asv knows it by: `v2.14.1`."""
        return f"v{self.version}"

    @property
    def seconds(self) -> int:
        """Noon of its date in UTC, as seconds since 1970: the same day in nearly every time zone."""
        return int(dt.datetime.combine(self.date, dt.time(12), tzinfo=dt.timezone.utc).timestamp())

    @property
    def message(self) -> str:
        """The facts as the message of a commit."""
        cuda = f"The default wheel has CUDA {self.cuda}." if self.cuda else "The CUDA of its default wheel is not known."
        return f"torch {self.version}\n\n{self.dated}\n{cuda}\n"


def chain_of(stored: Iterable[str], table: Table) -> tuple[Step, ...]:
    """The releases of the table and the stored ones (`2.14.1+cu130`; builds do not count), oldest first.

    A nightly that the table lacks has the date in its name; any other release that it lacks is placed one day after the
    release before it. ReleaseError where a stored name is that of no release.
    """
    versions = {entry.version for entry in table.entries} | {Release.parse(name).version for name in stored}
    steps: list[Step] = []
    for version in sorted(versions, key=order):
        steps.append(_step(version, steps[-1] if steps else None, table))
    return tuple(steps)


def _step(version: str, before: Step | None, table: Table) -> Step:
    entry = table.find(version)
    if entry is not None:
        return Step(version, entry.date, f"Released on {entry.date}.", entry.cuda)
    day = _of_nightly(version)
    if day is not None:
        return Step(version, day, f"Built on {day}.")
    if before is not None:
        return Step(version, before.date + _DAY, f"Its date is not known: placed one day after {before.version}.")
    return Step(version, _START, f"Its date is not known: placed on {_START}.")


def _of_nightly(version: str) -> dt.date | None:
    match = _NIGHTLY.search(version)
    if match is None:
        return None
    try:
        return dt.date(*(int(part) for part in match.groups()))
    except ValueError:
        return None
