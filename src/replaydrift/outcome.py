"""What one attempt came to: a closed set of outcomes with one text form each.

`Outcome.parse(outcome.text) == outcome` holds for every outcome, so a stored outcome is both readable and exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Each kind with what must follow its colon; None where nothing may.
DETAILS: Final[dict[str, str | None]] = {
    "correct": None,
    "wrong": None,
    "raised": "<class>: <text>",
    "crashed": "<signal, or 'exit N'>",
    "timed-out": "<limit>",
    "skipped": "<reason>",
    "broken": "<reason>",
}

# Addresses differ from run to run, and where a line of torch's own C++ stands from build to build, without meaning anything.
# A warning of C++ says where it comes from.
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_SOURCE_LINE = re.compile(r'"(?:[^"\s]*/)?((?:c10|aten|torch)/[^"\s]+)":\d+')
# An error of compiled code names a line of the user's, and takes it from whichever compilation its cache holds.
_USER_LINE = re.compile(r'(File "[^"]*"), line \d+, in \S+')
_TRIGGERED = re.compile(r"\s*\(Triggered internally at [^()]*\)")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One of seven kinds, with the detail that its kind demands."""

    kind: str
    detail: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in DETAILS:
            raise ValueError(f"unknown outcome kind {self.kind!r}: expected one of {', '.join(DETAILS)}")
        wanted = DETAILS[self.kind]
        if (wanted is None) != (self.detail is None) or self.detail == "":
            form = self.kind if wanted is None else f"{self.kind}:{wanted}"
            raise ValueError(f"outcome {self.kind!r} with detail {self.detail!r}: expected the form {form!r}")
        if self.kind == "raised" and ": " not in (self.detail or ""):
            raise ValueError(f"outcome 'raised' with detail {self.detail!r}: expected '<class>: <text>'")

    @property
    def text(self) -> str:
        """The one text form, for example `raised:RuntimeError: out of range`."""
        return self.kind if self.detail is None else f"{self.kind}:{self.detail}"

    @property
    def error(self) -> tuple[str, str] | None:
        """Class and text of what was raised; None for every other kind."""
        if self.kind != "raised" or self.detail is None:
            return None
        name, _, text = self.detail.partition(": ")
        return name, text

    @property
    def signature(self) -> str:
        """What two attempts must share to have come to the same: the text form without addresses and lines of torch's C++."""
        return same_text(self.text)

    @classmethod
    def parse(cls, text: str) -> Outcome:
        """Return the outcome whose text form this is; ValueError names the text and the known forms."""
        kind, colon, detail = text.partition(":")
        try:
            return cls(kind, detail if colon else None)
        except ValueError as error:
            raise ValueError(f"{text!r} is no outcome: {error}") from None

    @classmethod
    def raised(cls, class_name: str, text: str) -> Outcome:
        """An outcome for an exception: its class, and the first line of its text (the rest is in the record's chain)."""
        lines = text.strip().splitlines()
        return cls("raised", f"{class_name}: {lines[0].strip() if lines else '(no text)'}")


def same_text(text: str) -> str:
    """The text with addresses, lines of source files and runs of white space made equal, so that two runs of one error compare equal."""
    without_place = _USER_LINE.sub(r"\1", _TRIGGERED.sub("", _SOURCE_LINE.sub(r'"\1":…', text)))
    return _SPACES.sub(" ", _ADDRESS.sub("0x…", without_place)).strip()
