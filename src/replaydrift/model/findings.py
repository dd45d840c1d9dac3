"""What the observer found: each with the line of the script at fault, the other lines involved, why, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from replaydrift.model.observer_sites import Site

# Kinds by name, in the order of the report, each with its title.
KINDS: Final[dict[str, str]] = {
    "freed-memory": "a replay uses memory that was freed",
    "overwritten-by-graph": "another graph of the pool wrote over a value before it was read",
    "output-reuse": "an output was kept from one replay and read after another",
    "not-recorded": "work ran during a capture and is in no graph",
    "read-before-replay": "an output was read before any replay computed it",
    "hooks-not-called": "hooks that a graphed module never calls",
    "host-write-race": "the host writes memory that a queued copy may not have read yet",
    "host-read-race": "the host reads memory that a queued copy may not have filled yet",
    "cross-stream-reuse": "a freed block was reused while another stream may still use it",
    "device-race": "two streams use the same memory in no order",
    "sync-in-capture": "the host waits for the GPU inside a capture",
    "pageable-in-capture": "a copy from or to pageable memory inside a capture",
}


@dataclass(eq=False)
class Finding:
    """One thing found, with how often it was seen. `places` are the other lines, each with the part it plays."""

    kind: str
    at: Site
    why: str
    fix: str
    places: list[tuple[str, Site]] = field(default_factory=list)
    times: int = 1

    def as_tree(self) -> dict[str, object]:
        """The finding as JSON keeps it."""
        return {
            "kind": self.kind,
            "title": KINDS[self.kind],
            "file": self.at.file,
            "line": self.at.line,
            "function": self.at.function,
            "why": self.why,
            "fix": self.fix,
            "places": [{"role": role, "file": site.file, "line": site.line} for role, site in self.places],
            "times": self.times,
        }


class Findings:
    """All findings of a run, each once: what comes again on the same lines is counted."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Finding] = {}

    def seen(self, *key: object) -> bool:
        """True where a finding with this key is known; it is counted once more."""
        known = self._found.get(key)
        if known is not None:
            known.times += 1
        return known is not None

    def get(self, *key: object) -> Finding | None:
        """The finding with this key."""
        return self._found.get(key)

    def add(self, key: tuple[object, ...], finding: Finding) -> None:
        """Keep a finding under its key, which begins with its kind and the lines that make it one of its own."""
        self._found[key] = finding

    def __iter__(self):  # type: ignore[no-untyped-def]
        """The findings, by kind, then by line."""
        order = list(KINDS)
        return iter(sorted(self._found.values(), key=lambda found: (order.index(found.kind), found.at.file, found.at.line)))

    def __len__(self) -> int:
        return len(self._found)
