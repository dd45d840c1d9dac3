"""A case's version: a hash of the code it really uses, so that an edited comment keeps history and an edited constant drops it."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable
from functools import lru_cache


def needed_names(tree: ast.Module, roots: Iterable[str]) -> list[ast.stmt]:
    """The top-level statements that the functions named `roots` use, directly or through others, in file order."""
    defined: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _bound_names(statement):
            defined.setdefault(name, []).append(statement)
    wanted, queue = set(), list(roots)
    while queue:
        name = queue.pop()
        if name in wanted or name not in defined:
            continue
        wanted.add(name)
        for statement in defined[name]:
            queue.extend(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
    return [statement for statement in tree.body if wanted & set(_bound_names(statement))]


def code_version(source: str, tree: ast.Module, roots: Iterable[str]) -> str:
    """Twelve hex digits over the text of `needed_names`, docstrings, comments and blank lines left out.

    It is taken from the text, since what `ast.unparse` prints differs between Python releases.
    """
    lines = _without_comments(source)
    kept = []
    for statement in needed_names(tree, roots):
        skipped = {line for first, last in _docstrings(statement) for line in range(first, last + 1)}
        first = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", []))])
        kept += [lines[number - 1].rstrip() for number in range(first, (statement.end_lineno or first) + 1) if number not in skipped]
    text = "\n".join(line for line in kept if line)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _bound_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _docstrings(statement: ast.stmt) -> list[tuple[int, int]]:
    """First and last line of each docstring in a statement."""
    found = []
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            found.append((text.lineno, text.end_lineno or text.lineno))
    return found


@lru_cache(maxsize=8)  # One text for all cases of a file.
def _without_comments(source: str) -> tuple[str, ...]:
    lines = source.split("\n")  # As `ast` counts them: a form feed ends none.
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return tuple(lines)
