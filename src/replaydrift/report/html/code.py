"""The code of a case: what a reader needs of it, highlighted, and the whole script to copy."""

from __future__ import annotations

import ast

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from replaydrift.library import Case, Group, needed_names
from replaydrift.report.html.text import visible

_FORMATTER = HtmlFormatter(nowrap=True, classprefix="p-")
_LEXER = PythonLexer(stripnl=False)


def highlighted(source: str) -> Markup:
    """Python source as spans with classes `p-…`; every character of it is escaped."""
    return Markup(highlight(visible(source), _LEXER, _FORMATTER))  # noqa: S704  (the formatter escapes)


def excerpt(case: Case, group: Group) -> str:
    """The source of the case with the helpers, constants and the reference it uses, in file order, imports left out."""
    tree = ast.parse(group.source)
    lines = group.source.splitlines()
    parts = [
        "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        for statement in needed_names(tree, (case.function, case.reference))
        if not isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    return "\n\n\n".join(parts) + "\n"
