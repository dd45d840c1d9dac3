"""How small a change would be seen on a machine: what its newest run of a release against itself says of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replaydrift.costs.calibration import PLANTED, TARGET, TARGETED, Calibration, CalibrationError, Noise, calibrate
from replaydrift.costs.records import Costs
from replaydrift.costs.statistics import ALPHA, NEEDED, POWER
from replaydrift.report.html.numbers import with_unit


@dataclass(frozen=True)
class Believed:
    """A calibration as the page shows it: texts, one row a kind of family and one a headline metric."""

    words: str  # Release, block, visits, splits.
    calibrated: bool
    nominal: str
    alarms: tuple[tuple[str, str, str], ...]  # Where, with the margins, and with none.
    power: str  # A sentence on the slow-downs that must be found.
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def believed(own: Sequence[Costs]) -> Believed | None:
    """The newest calibration that a machine's costs allow; None where no release was measured against itself often enough."""
    enough = [one for one in own if one.block.purpose == "aa" and len(one.kept) >= 2 * NEEDED]
    if not enough:
        return None
    try:
        return _texts(calibrate(max(enough, key=lambda one: one.block.name)))
    except CalibrationError:  # Nothing was timed.
        return None


def _texts(found: Calibration) -> Believed:
    headlines = sorted((one for one in found.noise if one.headline), key=lambda one: (one.metric, one.subject))
    places = (("in the gate", "gate"), ("in the list", "listed"))
    return Believed(
        words=f"torch {found.release} against itself, block {found.block}: {found.visits} processes, "
        f"{found.splits} splits into two sides of {found.side}",
        calibrated=found.calibrated,
        nominal=_percent(ALPHA),
        alarms=tuple((where, _percent(getattr(found.with_margins, name)), _percent(getattr(found.without_margins, name))) for where, name in places),
        power=_power(found.power),
        columns=("subject", "metric", "median", "noise", "margin", "smallest found", *(f"{_percent(change, 0)} more" for change in PLANTED)),
        rows=tuple(_row(one) for one in headlines),
    )


def _power(power: float | None) -> str:
    if power is None:
        return ""
    return f"Of planted slow-downs of {_percent(TARGET, 0)} in {' and '.join(TARGETED)}, {_percent(power)} are found; {_percent(POWER, 0)} must be."


def _row(one: Noise) -> tuple[str, ...]:
    shares = (_percent(share, 0) for share in one.found)
    return (one.subject, one.metric, with_unit(one.median, one.metric), _percent(one.sd, 2), _percent(one.margin), _percent(one.smallest), *shares)


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"
