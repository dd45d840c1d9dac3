"""The code of a case: what a reader needs of it, highlighted, and the whole script to copy."""

from __future__ import annotations

import ast

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from replaydrift.case_version import needed_names
from replaydrift.library import Case, Group
from replaydrift.report.html.text import visible

_FORMATTER = HtmlFormatter(nowrap=True, classprefix="p-")
_LEXER = PythonLexer(stripnl=False)


def highlighted(source: str) -> Markup:
    """Python source as spans with classes `p-…`; every character of it is escaped."""
    return Markup(highlight(visible(source), _LEXER, _FORMATTER))  # noqa: S704  (the formatter escapes)


def excerpt(case: Case, group: Group) -> str:
    """The source of the case with the helpers, constants and the reference it uses, in file order, imports left out."""
    lines = group.source.splitlines()
    text, end = "", 0
    for statement in needed_names(ast.parse(group.source), (case.function, case.reference)):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        first = _first_line(lines, statement)
        blank = "\n" if first <= end + 1 else "\n\n"
        text += (blank if text else "") + "\n".join(lines[first - 1 : statement.end_lineno])
        end = statement.end_lineno or first
    return text + "\n"


def _first_line(lines: list[str], statement: ast.stmt) -> int:
    """The statement's first line, with decorators and the comment that stands directly above it."""
    first: int = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", []))])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return first
