"""What people wrote about the cases: titles, order, mechanisms, meanings, claims and how to run them, from groups.toml.

A folder without a groups.toml is a library all the same: a group's title and mechanism then come from its chapter.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from replaydrift.errors import LibraryError
from replaydrift.library import Case, Group, Library
from replaydrift.values import Value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# The first four are how a replay goes silently wrong; the others are what makes a capture fail, cost memory, or depend on a signature.
MECHANISMS: Final = ("frozen choice", "frozen pointer", "missing nodes", "async replay", "refused call", "held memory", "interface")
SCHEMA: Final = 1
DEFAULT_LIMIT_S: Final = 120.0

_GROUP_KEYS: Final = {"title", "mechanism", "link", "alone", "overlaps", "tolerance", "limit_s", "cases"}
_CASE_KEYS: Final = {"meaning", "mechanism", "alone", "overlaps", "tolerance", "limit_s", "model", "claims"}
_MODEL_KEYS: Final = {"options", "scale", "timing"}
_CLAIM_KEYS: Final = {"source", "release", "says", "observed", "link", "note"}


@dataclass(frozen=True, slots=True)
class Claim:
    """What a source says should come out: `says` is `correct`, `wrong` or `raised: <part of the text>`."""

    source: str
    says: str
    release: str | None = None  # the releases it speaks of, by prefix: `2.14`; None where it names none
    observed: tuple[Value, ...] | None = None
    link: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class HowOnModel:
    """How the CPU model runs a case: other sizes, how much larger work to pretend, and whether assumed durations decide."""

    options: Mapping[str, Value] = field(default_factory=dict)
    scale: float = 1.0
    timing: bool = False


@dataclass(frozen=True, slots=True)
class CaseNotes:
    """All that is known of a case beside its code.

    `alone` means with the GPU to itself, since it races or fills it; `overlaps` that several streams of it have to run at once.
    """

    mechanism: str
    meaning: str = ""
    alone: bool = False
    overlaps: bool = False
    tolerance: float = 0.0
    limit_s: float = DEFAULT_LIMIT_S
    model: HowOnModel = field(default_factory=HowOnModel)
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupNotes:
    """Title, mechanism and link of a group."""

    title: str
    mechanism: str
    link: str | None = None


@dataclass(frozen=True)
class Catalogue:
    """The library with what people wrote about it; groups in the order of the report."""

    library: Library
    groups: Mapping[str, GroupNotes]
    notes: Mapping[str, CaseNotes]
    sources: Mapping[str, Mapping[str, str]]

    @property
    def cases(self) -> tuple[Case, ...]:
        """All cases in the order of the report."""
        order = {name: position for position, name in enumerate(self.groups)}
        return tuple(sorted(self.library.cases, key=lambda case: order[case.group]))


def read_catalogue(library: Library) -> Catalogue:
    """The catalogue of a library; LibraryError lists every entry of groups.toml that breaks a rule."""
    path = library.folder / "groups.toml"
    tree: dict[str, Any] = {"schema": SCHEMA}
    if path.is_file():
        try:
            tree = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LibraryError(f"{path}: cannot be read as TOML: {error}") from error
    problems = _problems(tree, library, path)
    if problems:
        raise LibraryError("\n".join(problems))
    entries = tree.get("groups", {})
    ordered = [name for name in entries if any(group.name == name for group in library.groups)]
    ordered += [group.name for group in library.groups if group.name not in entries]
    groups = {name: _group_notes(library.group(name), entries.get(name, {})) for name in ordered}
    notes = {case.name: _case_notes(case, groups[case.group], entries.get(case.group, {})) for case in library.cases}
    return Catalogue(library, groups, notes, tree.get("sources", {}))


def _group_notes(group: Group, entry: Mapping[str, Any]) -> GroupNotes:
    title = entry.get("title") or (group.docstring.partition("\n")[0].rstrip(".") or group.name)
    return GroupNotes(title, entry.get("mechanism") or group.field("Mechanism") or "", entry.get("link") or group.field("Source"))


def _case_notes(case: Case, group: GroupNotes, entry: Mapping[str, Any]) -> CaseNotes:
    own = entry.get("cases", {}).get(case.function.replace("_", "-"), {})

    def either(key: str, default: Any) -> Any:
        return own.get(key, entry.get(key, default))

    model = own.get("model", {})
    return CaseNotes(
        mechanism=own.get("mechanism", group.mechanism),
        meaning=own.get("meaning", case.summary),
        alone=either("alone", default=False),
        overlaps=either("overlaps", default=False),
        tolerance=float(either("tolerance", 0.0)),
        limit_s=float(either("limit_s", DEFAULT_LIMIT_S)),
        model=HowOnModel(model.get("options", {}), float(model.get("scale", 1.0)), model.get("timing", False)),
        claims=tuple(_claim(claim) for claim in own.get("claims", [])),
    )


def _claim(tree: Mapping[str, Any]) -> Claim:
    observed = tree.get("observed")
    return Claim(
        source=tree["source"],
        says=tree["says"],
        release=tree.get("release"),
        observed=None if observed is None else tuple(observed),
        link=tree.get("link"),
        note=tree.get("note"),
    )


def _problems(tree: Mapping[str, Any], library: Library, path: Path) -> list[str]:
    """Every broken rule of groups.toml, a sentence each."""
    if tree.get("schema") != SCHEMA:
        return [f"{path}: schema {tree.get('schema')!r}: expected {SCHEMA}"]
    problems = []
    known = {group.name: {case.function.replace("_", "-") for case in group.cases} for group in library.groups}
    for name, entry in tree.get("groups", {}).items():
        at = f"{path}: [groups.{name}]"
        if name not in known:
            problems.append(f"{at}: there is no file {name.replace('-', '_')}.py beside it: rename the entry or write the file")
            continue
        problems += [f"{at}: unknown key {key!r}: expected one of {', '.join(sorted(_GROUP_KEYS))}" for key in entry.keys() - _GROUP_KEYS]
        if entry.get("mechanism", MECHANISMS[0]) not in MECHANISMS:
            problems.append(f"{at}: mechanism {entry['mechanism']!r}: expected one of {', '.join(MECHANISMS)}")
        for case, own in entry.get("cases", {}).items():
            problems += [f"{at[:-1]}.cases.{case}]: {text}" for text in _case_problems(case, own, known[name], tree.get("sources", {}))]
    return problems


def _case_problems(case: str, own: Mapping[str, Any], known: set[str], sources: Mapping[str, Any]) -> list[str]:
    if case not in known:
        return [f"there is no function {case.replace('-', '_')!r} in the file: cases there are {', '.join(sorted(known))}"]
    problems = [f"unknown key {key!r}: expected one of {', '.join(sorted(_CASE_KEYS))}" for key in own.keys() - _CASE_KEYS]
    problems += [
        f"model: unknown key {key!r}: expected one of {', '.join(sorted(_MODEL_KEYS))}" for key in own.get("model", {}).keys() - _MODEL_KEYS
    ]
    if own.get("mechanism", MECHANISMS[0]) not in MECHANISMS:
        problems.append(f"mechanism {own['mechanism']!r}: expected one of {', '.join(MECHANISMS)}")
    for claim in own.get("claims", []):
        problems += [f"claim: unknown key {key!r}: expected one of {', '.join(sorted(_CLAIM_KEYS))}" for key in claim.keys() - _CLAIM_KEYS]
        if claim.get("source") not in sources:
            problems.append(f"claim: source {claim.get('source')!r}: expected one of {', '.join(sources) or 'a [sources.NAME] table'}")
        says = str(claim.get("says", ""))
        if says not in ("correct", "wrong") and not says.startswith("raised"):
            problems.append(f"claim: says {says!r}: expected 'correct', 'wrong' or 'raised: part of the text'")
    return problems
