"""The library: which cases a folder of group files holds, found by reading the files and never by importing them.

A group is a file, a case a public function of it; the function's name says its kind, its longest-prefix `…_eager` is its
reference.
"""

from __future__ import annotations

import ast
import difflib
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from replaydrift.case_version import code_version
from replaydrift.errors import LibraryError


@dataclass(frozen=True, slots=True)
class Case:
    """One way to run a pitfall: a function of a group file."""

    group: str
    function: str
    kind: str
    reference: str
    path: Path
    line: int
    summary: str  # the docstring's first line: what a user may expect
    version: str
    options: frozenset[str] = frozenset()  # the names of its keyword defaults, such as `elements`

    @property
    def name(self) -> str:
        """`shared-pool/fix-capture-order`."""
        return f"{self.group}/{self.function.replace('_', '-')}"


@dataclass(frozen=True)
class Group:
    """One file: its text is the chapter, its functions are the cases and their references."""

    name: str
    path: Path
    source: str
    docstring: str
    cases: tuple[Case, ...]
    references: tuple[str, ...]

    def field(self, label: str) -> str | None:
        """What a line `Label: …` of the chapter's docstring says; None without such a line."""
        for line in self.docstring.splitlines():
            head, colon, rest = line.strip().partition(":")
            if colon and head == label:
                return rest.strip()
        return None


@dataclass(frozen=True)
class Library:
    """All groups of a folder, in the order of their file names."""

    folder: Path
    groups: tuple[Group, ...] = field(default=())

    @property
    def cases(self) -> tuple[Case, ...]:
        """All cases, group by group, in the order in which they stand in their files."""
        return tuple(case for group in self.groups for case in group.cases)

    def group(self, name: str) -> Group:
        """The group of this name; LibraryError lists those there are."""
        for group in self.groups:
            if group.name == name:
                return group
        raise LibraryError(
            f"no group {name!r} in {str(self.folder)!r}: groups there are {', '.join(g.name for g in self.groups) or 'none'}"
        )

    def select(self, patterns: Iterable[str] = ()) -> tuple[Case, ...]:
        """The cases whose full name matches any of the shell patterns (`shared-pool`, `*/bug`); all without one.

        LibraryError names a pattern that matches nothing, with the nearest names.
        """
        chosen: dict[str, Case] = {}
        wanted = tuple(patterns)
        for pattern in wanted:
            hits = [case for case in self.cases if pattern == case.group or fnmatchcase(case.name, pattern)]
            if not hits:
                raise LibraryError(_no_such_case(pattern, self))
            chosen.update((case.name, case) for case in hits)
        return tuple(case for case in self.cases if not wanted or case.name in chosen)


def kind_of(function: str) -> str:
    """`bug`, `fix` or `behaviour`, as the words of a function's name say."""
    words = function.split("_")
    if "bug" in words:
        return "bug"
    return "fix" if "fix" in words or "workaround" in words else "behaviour"


def is_reference(function: str) -> bool:
    """True for `eager` and every `…_eager`, unless its name says that it is a bug: `bug_eager` is a bug of eager code."""
    return function == "eager" or (function.endswith("_eager") and kind_of(function) != "bug")


def reference_of(function: str, references: Iterable[str]) -> str | None:
    """The reference with the longest prefix of the case's own name, else `eager`; None where there is neither."""
    known = set(references)
    fitting = [
        name
        for name in known
        if name != "eager" and (function == name.removesuffix("_eager") or function.startswith(name.removesuffix("eager")))
    ]
    if fitting:
        return max(fitting, key=len)
    return "eager" if "eager" in known else None


def read_library(folder: Path) -> Library:
    """The library of `cases/` or of a folder of yours; LibraryError lists every broken rule with file and line."""
    if not folder.is_dir():
        raise LibraryError(f"no folder {str(folder)!r}: expected a folder of case files; name it with --cases-dir DIR")
    groups, problems = [], []
    for path in sorted(folder.glob("*.py")):
        if path.name.startswith("_"):
            continue
        try:
            groups.append(read_group(path))
        except LibraryError as error:
            problems.append(str(error))
    by_name: dict[str, Path] = {}
    for group in groups:
        other = by_name.setdefault(group.name, group.path)
        if other != group.path:
            problems.append(f"{group.path}: the group {group.name!r} is {other} already: rename one of the two files")
    if not groups and not problems:
        problems.append(
            f"{str(folder)!r} holds no case file: expected files such as shared_pool.py with functions such as `bug` and `eager`"
        )
    if problems:
        raise LibraryError("\n".join(problems))
    return Library(folder, tuple(groups))


def read_source(path: Path) -> tuple[str, ast.Module]:
    """The text of a Python file and its syntax tree; LibraryError where it is none."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
        return source, ast.parse(source)
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError) as error:
        raise LibraryError(f"{path}: cannot be read as Python: {error}") from error


def read_group(path: Path) -> Group:
    """The group that one file holds; LibraryError lists its broken rules."""
    source, tree = read_source(path)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    references = tuple(name for name in functions if is_reference(name))
    names = [name for name in functions if not is_reference(name)]
    group = path.stem.replace("_", "-")
    problems = [
        f"{path}:{node.lineno}: `{node.name}` is asynchronous: a case is a plain generator; start a helper's name with '_'"
        for node in tree.body
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    if not names:
        problems.append(f"{path}: no case: expected a public function such as `def bug():`")
    cases = []
    for name in names:
        node = functions[name]
        reference = reference_of(name, references)
        if reference is None:
            problems.append(f"{path}:{node.lineno}: `{name}` has no reference: expected a function `eager` or `{name}_eager` in the file")
            continue
        required = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
        if required or any(default is None for default in node.args.kw_defaults):
            problems.append(f"{path}:{node.lineno}: `{name}` needs arguments: a case takes keyword defaults only, such as `elements=2**28`")
            continue
        if not any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in _own_nodes(node)):
            problems.append(f"{path}:{node.lineno}: `{name}` yields nothing: a case yields (step, value); start a helper's name with '_'")
            continue
        options = frozenset(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))
        summary = (ast.get_docstring(node) or "").strip().partition("\n")[0]
        version = code_version(source, tree, (name, reference))
        cases.append(Case(group, name, kind_of(name), reference, path, node.lineno, summary, version, options))
    if problems:
        raise LibraryError("\n".join(problems))
    return Group(group, path, source, ast.get_docstring(tree) or "", tuple(cases), references)


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes defined in it."""
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue.extend(ast.iter_child_nodes(node))


def _no_such_case(pattern: str, library: Library) -> str:
    names = [case.name for case in library.cases] + [group.name for group in library.groups]
    near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(repr(name) for name in near)}?" if near else "`replaydrift cases` lists them"
    return f"no case matches {pattern!r} in {str(library.folder)!r}: {hint}"
