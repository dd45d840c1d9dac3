"""What a case printed, or an error said, is hostile text until it is escaped."""

from __future__ import annotations

_SPECIAL = "\\`*_[]<>|#"


def escape(text: str) -> str:
    """The text on one line, unable to break out of a Markdown table or to start markup."""
    return " ".join("".join("\\" + character if character in _SPECIAL else character for character in text).split())
