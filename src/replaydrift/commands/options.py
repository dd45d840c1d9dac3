"""Options that several verbs share, so that one word means one thing everywhere."""

from __future__ import annotations

from pathlib import Path

import click

from replaydrift.catalogue import Catalogue, read_catalogue
from replaydrift.errors import ReleaseError
from replaydrift.library import read_library
from replaydrift.releases import Release

results = click.option(
    "--results", "results", type=click.Path(path_type=Path, file_okay=False), default=Path("results"), show_default=True,
    help="The store: the folder of results.",
)  # fmt: skip
machine = click.option("--machine", help="Whose results: a folder of the store, such as 'h200'.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program instead of text for a person.")
cases_dir = click.option(
    "--cases-dir", "cases_dir", type=click.Path(path_type=Path, file_okay=False), default=None,
    help="A folder of case files of yours.  [default: the project's own cases]",
)  # fmt: skip

patterns = click.option(
    "--cases", "patterns", multiple=True, metavar="PATTERN", help="A group, or a shell pattern such as '*/bug'.  [repeatable]",
)  # fmt: skip
engine = click.option(
    "--engine", type=click.Choice(["auto", "cuda", "model"]), default="auto", show_default=True, help="A GPU, or the CPU model.",
)  # fmt: skip
attempts = click.option("--attempts", type=click.IntRange(min=1), default=3, show_default=True, help="How often each case runs on a release.")
jobs = click.option("--jobs", type=click.IntRange(min=1), show_default="half the cores, at most 8; model: cores", help="Attempts at once.")
new_machine = click.option("--machine", metavar="NAME", help="The folder of the store.  [default: the GPU, such as 'h200', or 'model']")
note = click.option("--note", default="", metavar="TEXT", help="Words of yours, kept with the environment.")
limit = click.option(
    "--limit", "limit_s", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time limit of an attempt.",
)  # fmt: skip
visits = click.option(
    "--visits", type=click.IntRange(min=1), show_default="6; aa: 12; model: 1", help="How many processes of each release measure costs.",
)  # fmt: skip
resume = click.option("--resume", is_flag=True, help="Go on with what was stopped or killed.")
fresh = click.option("--fresh", is_flag=True, help="Discard what was stopped, and begin again.")


def own_cases() -> Path:
    """The folder of the project's cases: `cases/` here, else the one of the checkout this package runs from."""
    here = Path("cases")
    beside = Path(__file__).resolve().parents[3] / "cases"
    return here if here.is_dir() or not beside.is_dir() else beside


def catalogue_of(cases_dir: Path | None) -> Catalogue:
    """The catalogue of `--cases-dir`, or of the project's own cases; LibraryError where it breaks a rule."""
    return read_catalogue(read_library(cases_dir or own_cases()))


class Interpreter(click.ParamType):  # type: ignore[type-arg]
    """`RELEASE=PATH`, as a pair."""

    name = "RELEASE=PATH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The pair; a usage error where the text is none."""
        release, equals, path = str(value).partition("=")
        if not equals or not path:
            self.fail(f"found {value!r}, expected RELEASE=PATH, such as 2.14.1=env/bin/python", param, ctx)
        try:
            return str(Release.parse(release)), path
        except ReleaseError as error:
            self.fail(str(error), param, ctx)


class Either(click.ParamType):  # type: ignore[type-arg]
    """`RELEASE=PATH` or a path alone, as a pair; the release is None where none is said."""

    name = "[RELEASE=]PATH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str | None, str]:
        """The pair; a usage error where the text is none."""
        if isinstance(value, tuple):
            return value
        if "=" in str(value):
            return Interpreter().convert(value, param, ctx)
        return None, str(value)


def check_either(resume: bool, fresh: bool) -> None:
    """Nothing unless both `--resume` and `--fresh` are given: UsageError then."""
    if resume and fresh:
        raise click.UsageError("--resume goes on with what --fresh discards: give one of them")
