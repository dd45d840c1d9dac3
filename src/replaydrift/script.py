"""A case as a stand-alone script: what a person pastes into a bug report, and what a test runs with `python -I`."""

from __future__ import annotations

import ast
import textwrap

from replaydrift.case_version import needed_names
from replaydrift.errors import LibraryError
from replaydrift.library import Case, Library, read_source


def find_case(library: Library, name: str) -> Case:
    """The one case of this full name; LibraryError with the nearest names where there is none."""
    found = library.select([name])
    if len(found) != 1:
        listed = ", ".join(case.name for case in found)
        raise LibraryError(f"{name!r} names {len(found)} cases ({listed}): expected one, such as {found[0].name!r}")
    return found[0]


def script_of(case: Case) -> str:
    """The case with the helpers, constants and the reference it uses, and a loop that prints what both show.

    The script needs torch alone. It exits with 1 where a paired value differs, so that it serves `git bisect run` as it is.
    """
    source, tree = read_source(case.path)
    lines = source.split("\n")
    parts = [f'"""{case.name}: {case.summary}\n\n{_chapter(ast.get_docstring(tree) or "")}"""']
    imports: list[str] = []
    code: list[str] = []
    for statement in needed_names(tree, (case.function, case.reference)):
        first = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", []))])
        text = "\n".join(_with_comment_above(lines, first) + lines[first - 1 : statement.end_lineno])
        (imports if isinstance(statement, ast.Import | ast.ImportFrom) else code).append(text)
    if "import torch" not in imports:
        imports.append("import torch")
    parts.append("\n".join(imports))
    parts += code
    parts.append(_MAIN.format(case=case.function, reference=case.reference))
    return "\n\n\n".join(parts) + "\n"


_MAIN = '''
def _shown(values):
    """Read each value when it is yielded: a replay may overwrite it later."""
    for step, value in values:
        value = _plain(value)  # Lets go of a tensor whose block the case may be about to use again.
        if step in ("warmup", "capture", "replay"):
            yield step, value
        else:
            print(f"{{step:>8}}  {{value}}")


def _plain(value):
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {{key: _plain(item) for key, item in value.items()}}
    return value


if __name__ == "__main__":
    print("torch", torch.__version__, torch.cuda.get_device_name())
    observed, correct = list(_shown({case}())), list(_shown({reference}()))
    print(f"{{'step':>8}}  {{'observed':>24}}  {{'correct':>24}}")
    differing = len(observed) != len(correct)
    for (step, seen), (_, right) in zip(observed, correct):
        differing |= seen != right
        print(f"{{step:>8}}  {{str(seen):>24}}  {{str(right):>24}}{{'' if seen == right else '  <- differs'}}")
    raise SystemExit(1 if differing else 0)
'''.strip("\n")


def _chapter(docstring: str) -> str:
    return textwrap.dedent(docstring).strip() + "\n"


def _with_comment_above(lines: list[str], first: int) -> list[str]:
    """The comment lines that stand directly above line `first`."""
    above: list[str] = []
    number = first - 2
    while number >= 0 and lines[number].startswith("#"):
        above.insert(0, lines[number])
        number -= 1
    return above
