"""The command line: which exit code an error has, and what a person is told."""

from __future__ import annotations

import click
import pytest

from replaydrift import cli
from replaydrift.errors import StoreError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StoreError("found, expected, do"), "error: found, expected, do\n"),
        (PermissionError(13, "Permission denied", "results/verdicts"), "error: cannot go on 'results/verdicts': Permission denied"),
        (KeyError("surprise"), "this is a fault of replaydrift"),
    ],
)
def test_no_error_has_the_exit_code_of_a_change(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Exit code 1 is the answer "something changed": whatever goes wrong ends with 2, and the lines of a fault are shown."""

    def fail(*, standalone_mode: bool) -> None:
        assert not standalone_mode
        raise error

    monkeypatch.setattr(cli, "cli", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert ("Traceback" in told) == isinstance(error, KeyError)


@pytest.mark.parametrize("end", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_is_no_change(end: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C in a check must not read as "something changed"."""

    def stop(*, standalone_mode: bool) -> None:
        raise end

    monkeypatch.setattr(cli, "cli", stop)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, "stopped" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["--help"], 0), (["nosuch"], 2), (["check", "--nosuch"], 2), ([], 2)])
def test_what_click_ends_keeps_its_code(words: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Help and version are 0, what click refuses is 2 with its own words."""
    monkeypatch.setattr("sys.argv", ["replaydrift", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    if "--help" in words:
        assert "\n    replaydrift run --python env-2.13/bin/python\n    replaydrift run" in told.out
