"""The costs of two releases side by side: changed, the same, or cannot tell; and what keeps them from being compared.

Times compare within a block, on one GPU under one driver, for one version of a subject's code. A short fixed list of headline
metrics is the gate (Holm: any false alarm at all is rare); all other times are a list (Benjamini and Hochberg: few of its entries
are false). Exact counts have no false alarms and compare for equality, across blocks too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from statistics import geometric_mean

from replaydrift.costs import statistics
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.findings import Answer, CostCheck, CostFinding
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.costs.pace import is_pace, paced_values
from replaydrift.costs.records import Costs, Subject
from replaydrift.costs.statistics import ALPHA, NEEDED


def costs_between(store: CostStore, machine: str, old: str, new: str, subjects: Collection[str] | None = None) -> CostCheck | None:
    """The costs of two releases (full names) on a machine; None where neither has any (of `subjects`, where they are given), or one
    alone has counts, which compare with nothing.

    They are those of the newest block that has both, finished blocks before unfinished ones. Without such a block only counts
    compare, each from the newest block of its release.
    """
    blocks = [block for block in reversed(store.blocks(machine)) if {old, new} & set(store.releases(machine, block))]
    both = [block for block in blocks if {old, new} <= set(store.releases(machine, block))]
    if not blocks:
        return None
    if both:
        block = store.newest(machine, old, new) or both[0]
        found = compare_costs(store.read(machine, block, old), store.read(machine, block, new), subjects)
        return found if found.findings or subjects is None else None
    newest = {name: next((block for block in blocks if name in store.releases(machine, block)), None) for name in (old, new)}
    sides = {name: store.read(machine, block, name) for name, block in newest.items() if block is not None}
    if subjects is not None and not any(set(subjects) & set(side.subjects) for side in sides.values()):
        return None
    if len(sides) == 2:
        return compare_costs(sides[old], sides[new], subjects)
    ((there, alone),) = sides.items()
    if not _has_times(alone):
        return None
    problem = f"costs of {there} were measured (block {newest[there]!r}), those of {new if there == old else old} were not"
    return CostCheck(old, new, "", (), problem=problem, asked=_asked([alone], subjects))


def compare_costs(old: Costs, new: Costs, subjects: Collection[str] | None = None) -> CostCheck:
    """The findings of two releases' costs, those of `subjects` alone where they are given, what changed first."""
    before, after = old.environment, new.environment
    problem = _not_comparable(old, new)
    one_block = old.block == new.block
    names = sorted({*old.subjects, *new.subjects} if subjects is None else {*old.subjects, *new.subjects} & set(subjects))
    findings = [finding for name in names for finding in _of_subject(old, new, name, times=not problem)]
    findings, family = _decide(findings)
    if problem and not _has_times(old) and not _has_times(new):
        problem = ""  # Nothing was timed (the CPU model): nothing is lost.
    return CostCheck(
        old=before.release,
        new=after.release,
        block=old.block.name if one_block else "",
        findings=tuple(sorted(findings, key=lambda finding: finding.rank)),
        processes=(len(old.kept), len(new.kept)),
        toolkits=(_toolkit(old), _toolkit(new)),
        family=family,
        pending=len(old.missing) + len(new.missing) if one_block else 0,
        problem=problem,
        asked=_asked([old, new], subjects),
    )


def _asked(sides: Iterable[Costs], subjects: Collection[str] | None) -> bool:
    """True where the gate asks about any of these times."""
    series = ((name, metric) for side in sides for name, metric, _ in side.series() if subjects is None or name in subjects)
    return any(is_headline(name, metric) for name, metric in series)


def _has_times(costs: Costs) -> bool:
    """True where anything was timed: not on the CPU model."""
    return any(not METRICS[metric].exact for visit in costs.kept for one in visit.subjects.values() for metric in one.metrics if metric in METRICS)


def _not_comparable(old: Costs, new: Costs) -> str:
    """Why times of the two cannot be compared; empty where they can."""
    before, after = old.environment, new.environment
    if before.place != after.place:
        return f"measured on {before.gpu!r} (engine {before.engine}) and on {after.gpu!r} (engine {after.engine})"
    if old.block != new.block:
        return f"measured in blocks {old.block.name!r} and {new.block.name!r}, and times compare within a block"
    drivers = [str((side.facts.get("gpu") or {}).get("driver", "")) for side in (before, after)]
    return f"measured under the drivers {drivers[0]} and {drivers[1]}" if drivers[0] != drivers[1] else ""


def _toolkit(costs: Costs) -> str:
    """The CUDA of the wheel; empty on the CPU model, which runs none of it."""
    if costs.environment.engine == "model":
        return ""
    return str((costs.environment.facts.get("torch") or {}).get("cuda") or "")


def _of_subject(old: Costs, new: Costs, name: str, *, times: bool) -> Iterator[CostFinding]:
    """The findings of one subject, times not yet decided. Without `times` only counts are looked at."""
    sides = old.of(name), new.of(name)
    metrics = sorted({metric for side in sides for one in side for metric in one.metrics if metric in METRICS and not is_pace(metric)})
    versions = [sorted({one.version for one in side if one.metrics}) for side in sides]  # What failed has none.
    for metric in metrics:
        if not times and not METRICS[metric].exact:
            continue
        undecided = CostFinding(name, metric, "not-comparable", METRICS[metric].is_headline(name))
        if all(versions) and (versions[0] != versions[1] or len(versions[0]) > 1):
            why = f"its own code differs: version {', '.join(versions[0])} against {', '.join(versions[1])}"
            yield replace(undecided, why=why)
            continue
        values = paced_values((old, new), name, metric)
        absent = [side for side, found in zip((old, new), values, strict=True) if not found]
        if absent:
            yield _missing(undecided, absent[0])
        elif METRICS[metric].exact:
            yield _counted(undecided, values)
        else:
            yield _timed(undecided, values, _failure(sides[0]) or _failure(sides[1]))


def _missing(finding: CostFinding, side: Costs) -> CostFinding:
    """What a side does not have, and why: a release that is too old for a metric is no gap in the measurement."""
    own = side.of(finding.subject)
    release = side.environment.release
    lacks = next((one.lacks[finding.metric] for one in own if finding.metric in one.lacks), "")
    if lacks:
        return replace(finding, answer="missing", headline=False, why=f"{release} lacks it: {lacks}")
    return replace(finding, answer="missing", why=f"{release} has no value of it{_failure(own)}")


def _failure(own: tuple[Subject, ...]) -> str:
    return next((f": {one.failed}" for one in own if one.failed), "")


def _counted(finding: CostFinding, values: list[tuple[float, ...]]) -> CostFinding:
    """Counts of all processes of a side must agree; then the two sides are equal or not."""
    seen = [sorted(set(side)) for side in values]
    if any(len(side) > 1 for side in seen):
        texts = [", ".join(f"{value:,.0f}" for value in side) for side in seen]
        return replace(finding, answer="cannot-tell", why=f"processes of one release disagree: {texts[0]} → {texts[1]}")
    before, after = seen[0][0], seen[1][0]
    return replace(finding, answer="same" if before == after else "changed", before=before, after=after)


def _timed(finding: CostFinding, values: list[tuple[float, ...]], failure: str) -> CostFinding:
    """The comparison of two sides; the answer waits for the family. Too few processes, or a time of nothing, have none."""
    fewest = min(len(side) for side in values)
    if fewest < NEEDED:
        why = f"{len(values[0])} and {len(values[1])} processes, and {NEEDED} a side are needed{failure}"
        return replace(finding, answer="cannot-tell", why=why)
    if min(min(side) for side in values) <= 0:
        return replace(finding, answer="cannot-tell", why="a process measured a time of nothing")
    before, after = (geometric_mean(side) for side in values)
    comparison = statistics.compare(values[0], values[1], METRICS[finding.metric].margin)
    return replace(finding, answer="cannot-tell", before=before, after=after, comparison=comparison)


def _decide(findings: list[CostFinding]) -> tuple[list[CostFinding], int]:
    """The same findings with their answers, and the size of the gate's family."""
    decided = {finding.name: finding for finding in findings}
    family = sum(finding.headline and finding.comparison is not None for finding in findings)
    for headline in (True, False):
        own = [finding for finding in findings if finding.headline == headline and finding.comparison is not None]
        p_values = [finding.comparison.p for finding in own if finding.comparison is not None]
        adjusted = statistics.holm(p_values) if headline else statistics.benjamini_hochberg(p_values)
        level = statistics.per_test(ALPHA, len(own))
        decided |= {finding.name: _answered(finding, float(p), level) for finding, p in zip(own, adjusted, strict=True)}
    return list(decided.values()), family


def _answered(finding: CostFinding, adjusted: float, level: float) -> CostFinding:
    """Changed where the corrected p-value says so, the same where the cost is shown to lie within the margin, else cannot tell."""
    comparison = finding.comparison
    assert comparison is not None
    answer: Answer = "cannot-tell"
    if adjusted <= ALPHA:
        answer = "changed"
    elif comparison.p_outside <= ALPHA:
        answer = "same"
    return replace(finding, answer=answer, adjusted=adjusted, smallest=comparison.smallest(level))
