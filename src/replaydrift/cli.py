"""The command line: one verb a module under `commands`, imported only when it is called for."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import Final

try:
    import click
except ImportError:  # The environment of a torch release has this package without its extras.
    sys.exit("replaydrift: the command line needs its driver's packages: python3 -m pip install 'replaydrift[driver]'")

from replaydrift import __version__
from replaydrift.errors import ReplaydriftError

# The verbs in the order of a person's day, with the line that `--help` shows. A verb's module is imported only when it runs.
VERBS: Final[dict[str, str]] = {
    "cases": "List the cases: kind, mechanism, what a user may expect.",
    "show": "Print a case as a script that runs by itself.",
    "doctor": "Say what this machine has: GPU, driver, disk, releases that would run.",
    "run": "Run the cases on one torch release and store what happened.",
    "check": "May I upgrade? The changes between two releases, the dangerous first.",
    "upgrade": "Run two releases in turns, run again whatever differs, then check.",
    "measure": "Measure what capture, replay, padding and bucketing cost, releases in turns.",
    "aa": "A release against itself: does the gate of costs keep its word?",
    "bisect": "Find the first release on which a case's verdict changed.",
    "compare": "Set two stores side by side: my GPU against the reference.",
    "accept": "Draft the entry that explains a change in explanations.toml.",
    "floor": "From which release on does a case hold?",
    "agreement": "How well the CPU model agrees with GPU records.",
    "buckets": "Which bucket sizes to capture graphs for, given lengths of requests.",
    "model": "The CPU model of CUDA graphs: the rules it rests on.",
    "publish": "Write the report and asv's site from the store.",
}


class Verbs(click.Group):
    """A group of commands that imports `replaydrift.commands.<verb>` when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs in the order of a person's day."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb's command; None where there is no such verb."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"replaydrift.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table of verbs, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


# click keeps the lines of a paragraph that begins with a backspace.
_HELP: Final = """What a torch upgrade does to code that captures CUDA graphs.

Run the cases on a release, run them on another, then ask for the changes:

\b
  replaydrift run --python env-2.13/bin/python
  replaydrift run --python env-2.15/bin/python
  replaydrift check 2.13.0 2.15.0 --machine model
"""


@click.group(cls=Verbs, help=_HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="replaydrift")
def cli() -> None:
    """The command line; its verbs are `VERBS`."""


def main() -> None:
    """Run the command line. Errors a person can mend are one line on stderr and exit code 2."""
    if not sys.platform.startswith("linux"):
        sys.exit(f"replaydrift: found {sys.platform!r}, expected Linux: CUDA wheels, fork and /proc are what this program works with")
    try:
        # Without click's own exits: an interruption would be 1 there, which `check` and `bisect` give a meaning.
        sys.exit(cli(standalone_mode=False) or 0)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped: nothing was decided", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ReplaydriftError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        where = f" {str(error.filename)!r}" if error.filename else ""
        click.echo(f"error: cannot go on{where}: {error.strerror or error}; see to that, then run the same command again", err=True)
        sys.exit(2)
    except Exception:  # noqa: BLE001 - it is shown whole
        # Python's own exit code would be 1, which `check` and `bisect` give a meaning.
        traceback.print_exc()
        click.echo("error: this is a fault of replaydrift: please report it with the lines above; nothing was decided", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
