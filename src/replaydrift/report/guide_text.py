"""An upgrade guide as Markdown: the answer, what to do first, what is fixed and new, what warns and costs otherwise, what is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from replaydrift.catalogue import Catalogue
from replaydrift.changes import NEEDED, Change
from replaydrift.costs.explained import CHANGE as COST_CHANGED
from replaydrift.guide import CHEAPER, DO, FIXED, NEW, STILL, WARNS, Guide, Item
from replaydrift.report.checks import HEADINGS
from replaydrift.report.cost_words import LISTED, circumstances, remainder
from replaydrift.report.escape import escape
from replaydrift.report.guide_words import code, linked, moved, prose, side, warnings

NOTE: Final = "<!-- Generated from results/, cases/ and explanations.toml. Do not edit. -->"
_SECTIONS: Final = (
    (DO, "Do before you upgrade", "The most dangerous first."),
    (STILL, "Wrong before and now, with other values", "Nothing that was right broke here, but the garbage is another one."),
    (FIXED, "Fixed", "A workaround can go once no old release is in use any more."),
    (NEW, "New, and usable from here on", "The old release raises here, or has none of it."),
    (WARNS, "Warns otherwise", "What comes out is the same."),
    (CHEAPER, "Costs less", ""),
)
# What the answer names, and of the first three also that there is none.
_ASKED: Final = ("now-wrong", "now-crashes", "now-raises")
_TOLD: Final = (*_ASKED, "now-loud", "cost-changed", "error-changed")
# Beside the name of so many cases their meaning is printed too.
_FEW: Final = 3


def to_guide(guide: Guide, catalogue: Catalogue) -> str:
    """The whole page, the same for the same store."""
    check = guide.check
    parts = [NOTE, f"# From torch {_short(check.old)} to {_short(check.new)}: what changes for captured CUDA graphs"]
    parts += [_answer(guide), _measured(guide)]
    for section, heading, remark in _SECTIONS:
        items = guide.of(section)
        if items:
            marks = [f"{number}." for number in range(1, len(items) + 1)] if section == DO else ["-"] * len(items)
            parts += [f"## {heading}", *([remark] if remark else [])]
            parts += ["\n".join(_item(item, mark, catalogue)) for mark, item in zip(marks, items, strict=True)]
    parts += ["## Costs", "\n".join(_costs(guide)), "## Open", "\n".join(_open(guide)), "## See for yourself", _reproduce(guide)]
    return "\n\n".join(parts) + "\n"


def _answer(guide: Guide) -> str:
    """May I upgrade? One paragraph that leaves nothing out that could hurt."""
    check, todo = guide.check, guide.of(DO)
    blind = [item for item in todo if item.open and item.change in _ASKED]
    yes = f"Yes, after {_few(len(todo), 'the one point', 'the points')} below" if todo else "Yes: nothing that worked before was seen to break"
    costs = ", though not all that it costs could be told" if _untold(guide) else ""
    if blind:
        said = [f"**Not yet: of the points below {_few(len(blind), 'one is', 'are')} dangerous and unexplained.**"]
    elif check.nothing_ran:
        said = ["**Nobody can tell: both releases skip all of these cases.**"]
    elif check.undecided:
        unknown = _few(len(check.undecided), "one case", "cases")
        said = [f"**Nobody can tell yet: of {unknown} nothing can be said. Of the others: {yes[0].lower()}{yes[1:]}{costs}.**"]
    else:
        said = [f"**{yes}{costs}.**"]
    said.append(f"Of {check.same + len(check.findings) + len(check.skipped)} cases {check.same} behave the same on both releases.")
    if check.skipped:
        said.append(f"*Skipped on both, so that nothing is known:* {_groups(check.skipped)}.")
    if flaky := [finding for finding in check.findings if finding.change.change == "flaky"]:
        said.append(f"*Flaky, so that nothing is said of a change:* {_names([finding.change.case for finding in flaky])}.")
    for change in _TOLD:
        items = [item for item in todo if item.change == change]
        count = len({finding.change.case for item in items for finding in item.cases})
        if items:
            many = f" ({count} case{'s' if count > 1 else ''})" if count else ""
            said.append(f"*{_heading(change)}{many}:* {_titles(items)}.")
        elif change in _ASKED:
            said.append(f"*{_heading(change)}:* none.")
    if fixed := guide.of(FIXED):
        said.append(f"*Fixed, so that a workaround can go:* {_titles(fixed)}.")
    if new := guide.of(NEW):
        said.append(f"*New:* {len(new)}, listed below.")
    said.append(f"*Times:* {_told_of_times(guide)}")
    if unexplained := {finding.change.case for item in guide.items if item.open for finding in item.cases}:
        said.append(f"*Open:* nobody has explained yet what changed in {len(unexplained)} of the cases.")
    return " ".join(said)


def _groups(changes: Iterable[Change]) -> str:
    """The groups of these cases, each with the number of its cases."""
    counts = Counter(change.case.partition("/")[0] for change in changes)
    return ", ".join(f"{code(group)} ({count})" for group, count in sorted(counts.items()))


def _untold(guide: Guide) -> bool:
    """True where a step's costs are not known, or not all that the gate asks about."""
    return any(step.costs is None or step.costs.cannot_tell for step in guide.priced)


def _few(count: int, one: str, several: str) -> str:
    """`the one point` for one, `the 4 points` for more."""
    if count == 1:
        return one
    head, _, tail = several.rpartition(" ")
    return f"{head} {count} {tail}".strip() if head else f"{count} {tail}"


def _heading(change: str) -> str:
    """What a change is called; a cost that is something to do about is one that grew."""
    return "Costs more" if change == COST_CHANGED else HEADINGS[change]


def _titles(items: Iterable[Item]) -> str:
    return "; ".join(dict.fromkeys(_title(item) for item in items))


def _title(item: Item) -> str:
    """What a person called it, or the first names."""
    if item.title:
        return prose(item.title)
    names = list(dict.fromkeys([finding.change.case for finding in item.cases] or [finding.subject for finding in item.costs]))
    return code(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _told_of_times(guide: Guide) -> str:
    """What is known of times, step by step: how many were compared, changed, or cannot be told."""
    told = []
    for step in guide.priced:
        if step.costs is None or step.costs.problem or not step.costs.family:
            told.append(f"from {_short(step.old)} to {_short(step.new)} none were compared")
            continue
        times = [finding for finding in step.costs.findings if finding.headline and not finding.exact]
        changed, open_ = sum(finding.answer == "changed" for finding in times), sum(finding.undecided for finding in times)
        told.append(
            f"from {_short(step.old)} to {_short(step.new)} {step.costs.family} of capture and replay were compared, "
            f"of which {changed} changed and {open_} could not be told"
        )
    return "; ".join(told) + "."


def _measured(guide: Guide) -> str:
    """On what, with what, and what was done to the wheels."""
    check = guide.check
    if check.engine == "model":
        said = ["**Modelled**: these are verdicts of the CPU model of CUDA graphs, not of a GPU."]
    else:
        said = [f"Measured on {escape(check.gpu)}" + (f", driver {escape(guide.driver)}." if guide.driver else ".")]
    said.append(f"A change counts where {NEEDED} attempts or more agree on each side, each in a process of its own.")
    said.append(f"Releases: {', '.join(guide.releases)}. “Since” names the first of them that shows a change; what lies between them was not run.")
    if beside := ", ".join(f"{name} {escape(old)} → {escape(new)}" for name, (old, new) in check.environment.items()):
        said.append(f"Beside torch: {beside}.")
    for note in dict.fromkeys(guide.notes.values()):
        names = [release for release, own in guide.notes.items() if own == note]
        said.append(f"Of {', '.join(names)}: {escape(note)}.")
    return " ".join(said)


def _item(item: Item, mark: str, catalogue: Catalogue) -> Iterator[str]:
    """One point of a list: what changed and since when, what to do, why, then the cases."""
    indent = " " * (len(mark) + 1)
    kind = f"{_heading(item.change)}, " if item.section == DO else ""
    yield f"{mark} **{_title(item)}** ({kind}{_since(item)})"
    if item.advice:
        yield f"{indent}- {'**What to do:** ' if item.section == DO else ''}{prose(item.advice)}"
    for entry in {entry.why: entry for entry in item.explained_by}.values():
        yield f"{indent}- Why: {linked(entry.why, entry.link)}"
    if item.open:
        yield f"{indent}- **Open:** nobody has explained this yet."
    yield from (f"{indent}- {line}" for line in moved(item.costs))
    if item.section == WARNS:
        yield from (f"{indent}- {line}" for line in warnings(item.cases))
        yield f"{indent}- {_names([finding.change.case for finding in item.cases])}"
        return
    yield from (f"{indent}{line}" for line in _cases(item, catalogue))


def _since(item: Item) -> str:
    return f"since {_short(item.step[1])}" if item.step else "at a release that the store cannot tell"


def _cases(item: Item, catalogue: Catalogue) -> Iterator[str]:
    """Each case of a point with both sides; of what is new only what the old release said to it."""
    old, new = map(_short, item.shown)
    for finding in item.cases[:LISTED]:
        change = finding.change
        if item.section == NEW:
            yield f"- {code(change.case)}; on {old}: {side(change.old)}"
            continue
        notes = catalogue.notes.get(change.case)
        meaning = f": {escape(notes.meaning)}" if notes and notes.meaning and len(item.cases) <= _FEW else ""
        yield f"- {code(change.case)}{meaning}"
        yield f"  - {old}: {side(change.old)}"
        yield f"  - {new}: {side(change.new)}"
    if len(item.cases) > LISTED:
        yield f"- and {_names([finding.change.case for finding in item.cases[LISTED:]])}"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(code(name) for name in names[:LISTED])
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _costs(guide: Guide) -> Iterator[str]:
    """For each step: where its costs come from, what is the same, and which times nobody can tell."""
    for step in guide.priced:
        at = f"- {_short(step.old)} → {_short(step.new)}:"
        if step.costs is None:
            yield f"{at} none were measured."
            continue
        rest = "" if step.costs.problem and not step.costs.findings else f" {escape(remainder(step.costs))}"
        yield f"{at} {escape(circumstances(step.costs))}{rest}"
        if any(item.costs and item.step == (step.old, step.new) for item in guide.of(DO)):
            yield "  - What there is more of is a point of the list above."
        open_ = [finding for finding in step.costs.findings if finding.undecided]
        for metric in dict.fromkeys(finding.metric for finding in open_):
            own = [finding for finding in open_ if finding.metric == metric]
            limits = sorted(finding.smallest for finding in own if finding.smallest is not None)
            ends = " to ".join(dict.fromkeys(f"{100 * limit:,.0f}" for limit in (limits[:1] + limits[-1:])))
            seen = f": a change below {ends} % would not have been noticed" if limits else ""
            yield f"  - {code(metric)} of {', '.join(code(finding.subject) for finding in own)} cannot be told{seen}."


def _open(guide: Guide) -> Iterator[str]:
    """All that this page cannot say, a line each."""
    lines = []
    for item in guide.items:
        if item.open:
            names = _names([finding.change.case for finding in item.cases] or [finding.name for finding in item.costs])
            became = "costs less" if item.section == CHEAPER else _heading(item.change).lower()
            lines.append(f"- {names}: {became}, {_since(item)}; nobody has explained it.")
    check = guide.check
    doubtful = [finding for finding in check.findings if finding.change.change == "flaky" or finding in check.undecided]
    lines += [f"- {code(finding.change.case)}: {HEADINGS[finding.change.change].lower()}: {escape(finding.change.why)}" for finding in doubtful]
    for why, alike in groupby(sorted(check.skipped, key=lambda change: (change.why, change.case)), key=lambda change: change.why):
        lines.append(f"- {_names([change.case for change in alike])}: skipped {escape(why)}")
    lines += [f"- {code(entry.case)}: an entry of explanations.toml that matches nothing any more." for entry in check.stale]
    if _untold(guide):
        lines.append("- Costs that the section above cannot tell.")
    yield from lines or ["Nothing."]


def _reproduce(guide: Guide) -> str:
    check = guide.check
    names = [finding.change.case for item in guide.items for finding in item.cases]
    commands = [f"$ replaydrift show {names[0]} > case.py     # plain torch; run it with both releases"] if names else []
    commands.append(f"$ replaydrift check {_short(check.old)} {_short(check.new)} --machine {check.machine}   # all of it, with every text in full")
    return "\n".join(["```console", *commands, "```"])


def _short(release: str) -> str:
    """The release without its build."""
    return release.partition("+")[0]
