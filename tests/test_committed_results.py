"""What is committed under results/ says nothing of the machine that it was made on but what its environment says."""

from __future__ import annotations

import re

from toybox import SOURCE

# A frame of a Python traceback in a file of some folder; files of torch, of ours and of the case stand there without it.
_ABSOLUTE = re.compile(r'File \\"/[^"]*')


def test_no_folder_of_a_machine_is_stored() -> None:
    """No traceback that is stored names a file by its place on the machine that ran it."""
    stored = [*(SOURCE.parent / "results" / "verdicts").rglob("*.json")]
    assert stored
    found = {(path.name, match) for path in stored for match in _ABSOLUTE.findall(path.read_text(encoding="utf-8"))}
    assert not found
