"""A visit: all subjects of a request, group by group, each group in a process of its own forked from one that never touches CUDA.

A group is a workload, the policies of one trace on one model, or the cases of one file. Where a group's process fails, its subject is noted
as failed and the rest of the group goes on in a new process.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

from replaydrift.child.exceptions import class_name, text_of
from replaydrift.measuring import bucketing, case_costs, workload_costs
from replaydrift.measuring.core import stay_on_one_core
from replaydrift.measuring.forking import Apart, Tell
from replaydrift.measuring.gpu import Reading
from replaydrift.measuring.planting import Plant
from replaydrift.measuring.results import Measured

Request = dict[str, Any]
# How much of a visit's time a subject gets beside others. A process that says nothing for so long is stopped.
_SHARES: Final = {"workload": 3.0, "bucketing": 1.0, "case": 0.5}
_PATIENCE_S: Final = 120.0
_LONGEST_FAILURE: Final = 500


@dataclass(frozen=True)
class Group:
    """Subjects that share a process, by name: what the request says of each."""

    kind: str
    members: dict[str, Any]

    @property
    def share(self) -> float:
        """Its part of the time, beside other groups' parts."""
        return _SHARES[self.kind] * len(self.members)


@dataclass
class Visit:
    """Measures what the request asks for. `say` hears a line a subject; `readings` are the states that the GPU was seen in."""

    request: Request
    say: Callable[[dict[str, Any]], None]
    readings: list[Reading] = field(default_factory=list)

    def run(self) -> None:
        """Measure everything, once."""
        groups = list(groups_of(self.request))
        seconds, shares = float(self.request.get("seconds", 40.0)), sum(group.share for group in groups)
        begun = time.perf_counter()
        done = 0.0
        for group in groups:
            done += group.share
            self._run_group(group, begun + seconds * done / shares)

    def _run_group(self, group: Group, until_s: float) -> None:
        left = dict(group.members)
        while left:
            apart = Apart(partial(_measure, self.request, group.kind, dict(left), until_s), _PATIENCE_S)
            begun = ""
            for message in apart:
                if "begun" in message:
                    begun = message["begun"]
                elif "reading" in message:
                    self.readings.append(Reading(**message["reading"]))
                elif left.pop(message["subject"], None) is not None:  # What fails after it was measured has been measured.
                    self.say(message)
            if left and (not begun or begun in left):
                name = begun or next(iter(left))
                del left[name]
                self.say({"subject": name, "failed": apart.ending.how or "its process ended without a word about it"})


def groups_of(request: Request) -> Iterator[Group]:
    """The groups of a request, in its order."""
    for name in request.get("workloads", ()):
        yield Group("workload", {name: name})
    traces: dict[tuple[str, ...], dict[str, Any]] = {}
    for wish in request.get("bucketing", ()):
        traces.setdefault((wish["model"], wish["name"], repr(wish["trace"])), {})[bucketing.subject(wish)] = wish
    yield from (Group("bucketing", members) for members in traces.values())
    files: dict[str, dict[str, Any]] = {}
    for case in request.get("cases", ()):
        files.setdefault(case["path"], {})[case["name"]] = case
    yield from (Group("case", members) for members in files.values())


def _measure(request: Request, kind: str, members: dict[str, Any], until_s: float, tell: Tell) -> None:
    """In the process of a group: measure its members and tell of each. It ends at the first failure, so that nothing broken goes on."""
    if kind != "case":  # A case may be about the collector, and may start threads of its own.
        gc.disable()
        if request["engine"] == "cuda":
            _settle_on_a_core()
    turn = ""

    def begin(name: str) -> None:
        nonlocal turn
        turn = name
        tell({"begun": name})

    try:
        for found, reading in _measured(request, kind, members, until_s, begin):
            tell(found.line())
            if reading is not None:
                tell({"reading": asdict(reading)})
    except Exception as error:  # noqa: BLE001 - the failure of a subject is what is told of it
        line = text_of(error).strip().partition("\n")[0]
        tell({"subject": turn or next(iter(members)), "failed": f"{class_name(error)}: {line}"[:_LONGEST_FAILURE]})


def _settle_on_a_core() -> None:
    import torch

    torch.cuda.synchronize()  # Makes the context, with CUDA's own threads.
    stay_on_one_core()


def _measured(
    request: Request, kind: str, members: dict[str, Any], until_s: float, begin: Callable[[str], None]
) -> Iterator[tuple[Measured, Reading | None]]:
    counts_only = request["engine"] == "model"  # Times of a virtual clock are no costs.
    plants = {name: Plant(**plant) for name, plant in request.get("plant", {}).items()}
    if kind == "bucketing":
        wishes: Sequence[Any] = list(members.values())
        if counts_only:
            yield from ((found, None) for found in bucketing.count_all(wishes, begin))
        else:
            every, reading = bucketing.measure_all(wishes, plants, until_s, begin)
            yield from ((found, reading if number == 0 else None) for number, found in enumerate(every))
        return
    for number, (name, member) in enumerate(members.items()):
        begin(name)
        if kind == "workload":
            yield (workload_costs.count(name), None) if counts_only else workload_costs.measure(name, plants.get(name, Plant()), until_s)
            continue
        now = time.perf_counter()
        own_s = now + (until_s - now) / (len(members) - number)
        yield (case_costs.count(member), None) if counts_only else case_costs.measure(member, own_s)
        case_costs.forget()
