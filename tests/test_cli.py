"""The command line: which exit code an error has, and what a person is told."""

from __future__ import annotations

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

    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "cli", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert ("Traceback" in told) == isinstance(error, KeyError)
