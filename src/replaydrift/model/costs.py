"""Assumed durations, in microseconds of the virtual clock. Nothing measured: what depends on them is marked as timing."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Costs:
    """How long things take on the virtual clock.

    `scale` lets a small tensor stand for one that many times larger, and `memory_scale` lets it hold that much more memory.
    """

    host_op_us: float = 5.0
    host_replay_us: float = 8.0
    launch_us: float = 2.0
    bytes_per_us: float = 4_000_000.0
    cycles_per_us: float = 2_000.0
    scale: float = 1.0
    memory_scale: float = 1.0

    def of_bytes(self, count: int) -> float:
        """The duration of a kernel or a copy that touches so many bytes."""
        return self.launch_us + count * self.scale / self.bytes_per_us

    def as_table(self) -> dict[str, float]:
        """The assumptions by name, for the record; the scales belong to a case and are none of them."""
        return {name: value for name, value in asdict(self).items() if not name.endswith("scale")}


COSTS = Costs()
