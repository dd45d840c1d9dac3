"""What a case did, release by release, said once for neighbours that did the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replaydrift import stored_releases
from replaydrift.changes import QUIET, compare
from replaydrift.outcome import Outcome
from replaydrift.records import Attempt, CaseRecord, Raised, Warned
from replaydrift.report.html.text import visible
from replaydrift.strip import Missing
from replaydrift.values import Value, show
from replaydrift.verdicts import Summary, summarise, verdict

STEP_NAMES = {"warmup": "warm-up", "capture": "capture", "replay": "replay"}


@dataclass(frozen=True, slots=True)
class CellView:
    """One cell of a strip as text: `observed` large, `correct` beneath it."""

    step: str
    observed: str
    correct: str
    differs: bool
    whole: str


@dataclass(frozen=True)
class Variant:
    """Attempts that came to the same in every respect a reader sees, and how many of all they are."""

    attempt: Attempt
    count: int
    of: int
    verdict: str
    cells: tuple[CellView, ...]

    @property
    def outcome(self) -> Outcome:
        """What these attempts came to."""
        return self.attempt.outcome

    @property
    def evidence(self) -> tuple[tuple[str, Value], ...]:
        """What they yielded beside paired values."""
        return self.attempt.evidence

    @property
    def chain(self) -> tuple[Raised, ...]:
        """What a user sees first, then its causes."""
        return self.attempt.chain

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """The warnings of one of them."""
        return self.attempt.warnings


@dataclass(frozen=True)
class Era:
    """Neighbouring releases on which a case did the same; what is shown is the newest one's record."""

    releases: tuple[str, ...]
    record: CaseRecord
    summary: Summary
    variants: tuple[Variant, ...]
    line: str = "default"

    @property
    def span(self) -> str:
        """`2.11.0+cu130 to 2.13.0+cu130`, or the one release."""
        first, last = self.releases[0], self.releases[-1]
        return first if first == last else f"{first} to {last}"

    @property
    def marks(self) -> tuple[str, ...]:
        """`rule` where the verdict rests on a written rule of the model, `timing` where it depends on assumed durations."""
        return marks(self.record)

    @property
    def rules(self) -> tuple[str, ...]:
        """The model's rules that any attempt rests on, sorted."""
        return tuple(sorted({rule for attempt in self.record.attempts for rule in attempt.rules}))


def marks(record: CaseRecord | None) -> tuple[str, ...]:
    """Which reservations a reader must know of: any of `rule`, `timing`."""
    if record is None:
        return ()
    found = ["rule"] if any(attempt.rules for attempt in record.attempts) else []
    return tuple([*found, "timing"] if record.timing else found)


def eras_of(records: Mapping[str, CaseRecord]) -> list[Era]:
    """The eras of a case from its records by release: line by line, newest first within a line."""
    eras = []
    for line in stored_releases.lines(records):
        runs: list[list[str]] = []
        for release in line:
            alike = runs and compare("", records[runs[-1][-1]], records[release]).change in QUIET
            if alike:
                runs[-1].append(release)
            else:
                runs.append([release])
        word = stored_releases.wheel(line[-1])
        eras += [_era(run, records[run[-1]], word) for run in reversed(runs)]
    return eras


def _era(run: list[str], record: CaseRecord, line: str) -> Era:
    return Era(tuple(run), record, summarise(record), tuple(_variants(record)), line)


def _variants(record: CaseRecord) -> Iterable[Variant]:
    """Distinct attempts, the most frequent first."""
    groups: dict[tuple[object, ...], list[Attempt]] = {}
    for attempt in record.attempts:
        key = (attempt.outcome.signature, repr(attempt.strip), attempt.errors, attempt.warned)
        groups.setdefault(key, []).append(attempt)
    for attempts in sorted(groups.values(), key=len, reverse=True):
        first = attempts[0]
        cells = tuple(_cell(cell.step, cell.observed, cell.correct, cell.differs(record.tolerance)) for cell in first.strip)
        yield Variant(first, len(attempts), len(record.attempts), verdict(record.kind, first.outcome), cells)


def _cell(step: str, observed: Value | Missing, correct: Value | Missing, differs: bool) -> CellView:
    def text(value: Value | Missing, width: int) -> str:
        return "nothing" if isinstance(value, Missing) else visible(show(value, width))

    whole = f"{STEP_NAMES.get(step, step)}: observed {text(observed, 400)}, correct {text(correct, 400)}"
    return CellView(step, text(observed, 26), text(correct, 26), differs, whole)
