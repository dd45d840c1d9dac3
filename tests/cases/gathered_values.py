"""What every case of the library comes to: the first 66 of `expected_values.py`, and a file a group in `expected/`.

A file of that folder holds `EXPECTED`, in the form of `expected_values.EXPECTED`, and where releases differ `OTHERWISE`: by case
the first and the last release of a range and what is true of it, or a list of such ranges.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import expected_values
from expected_values import Expected

FOLDER = Path(__file__).parent / "expected"

EXPECTED: dict[str, Expected] = dict(expected_values.EXPECTED)
OTHERWISE: dict[str, Any] = dict(expected_values.OTHERWISE)
for _path in sorted(FOLDER.glob("*.py")):
    _found = runpy.run_path(str(_path))
    _group = _path.stem.replace("_", "-")
    _strangers = {name for name in {*_found["EXPECTED"], *_found.get("OTHERWISE", {})} if name.partition("/")[0] != _group}
    assert not _strangers, f"{_path.name} speaks of {', '.join(sorted(_strangers))}"
    EXPECTED |= _found["EXPECTED"]
    OTHERWISE |= _found.get("OTHERWISE", {})


def expected(name: str, release: tuple[int, int]) -> Expected:
    """Outcome and values of a case on a release, such as (2, 13)."""
    ranges = OTHERWISE.get(name, [])
    for first, last, otherwise in ranges if isinstance(ranges, list) else [ranges]:
        if first <= release <= last:
            return otherwise  # type: ignore[no-any-return]
    return EXPECTED[name]
