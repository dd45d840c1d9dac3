"""Metrics: every number that is measured or counted, in one table: its unit, what it includes, and when a change of it matters.

A name ends in its unit; counts of things have none. A margin is the change below which nobody would act: a ratio, 0.01 for 1 %.
Exact counts compare for equality and have no margin. The headline metrics decide the gate, at these subjects only: with a
thousand tests in a gate no realistic noise leaves any power.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

Clock = Literal["gpu", "host", "pace", ""]

MOST_HEADLINES: Final = 60

# Where the gate looks: the standard sizes, and the policies that people choose between.
_SIZES: Final = ("chain/10", "chain/100", "chain/1000", "chain/10000", "mlp/*", "decoder/*")
_TRACES: Final = (
    "bucketing/*/long-tailed/pad-to-max",
    "bucketing/*/long-tailed/powers-of-two",
    "bucketing/*/requests/pad-to-max",
    "bucketing/*/requests/powers-of-two",
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `clock` says whose time it is, and is empty for an exact count; `headline` holds patterns of subjects.

    A metric of the clock `pace` is no cost: it says how fast the host was while others were measured, which name it as their `pace`.
    """

    name: str
    unit: str
    meaning: str
    clock: Clock = ""
    margin: float = 0.0
    headline: tuple[str, ...] = ()
    pace: str = ""

    @property
    def exact(self) -> bool:
        """True for what is counted and compares for equality."""
        return not self.clock

    def is_headline(self, subject: str) -> bool:
        """True where the gate looks at this metric of this subject."""
        return any(fnmatchcase(subject, pattern) for pattern in self.headline)


_TABLE: Final = (
    # Of workloads and of cases. A case's graphs are taken together: the sum of their captures, the replay of all of them.
    Metric("replay_gpu_us", "us", "a replay on the GPU, from events around many replays: its kernels and the gaps between them",
           "gpu", 0.01, _SIZES),
    Metric("replay_host_us", "us", "the call of replay() on the host, which returns before the GPU is done", "host", 0.10,
           ("chain/1", *_SIZES), pace="steady_pace_us"),
    # No pace: half of it is the GPU's own time.
    Metric("first_replay_us", "us", "the first replay of a new graph until the GPU is done, its upload included", "host", 0.10),
    Metric("eager_gpu_us", "us", "an eager step, from events around many steps; where the host is slower, the host's pace",
           "gpu", 0.03),
    Metric("eager_host_us", "us", "the host's part of an eager step: until the last kernel is launched", "host", 0.10,
           pace="steady_pace_us"),
    Metric("warmup_ms", "ms", "the eager steps before a capture until the GPU is done, lazily loaded kernels included", "host", 0.10),
    Metric("capture_ms", "ms", "from before capture_begin to after capture_end of a graph that can then be replayed: "
           "recording and instantiation", "host", 0.10, ("chain/1", *_SIZES), pace="capture_pace_us"),
    Metric("record_ms", "ms", "the recording alone: capture with keep_graph=True", "host", 0.10, pace="capture_pace_us"),
    Metric("instantiate_ms", "ms", "CUDAGraph.instantiate() alone, of a graph captured with keep_graph=True", "host", 0.10,
           pace="capture_pace_us"),
    Metric("bare_loop_gpu_us", "us", "a replay of the same graph by a bare loop of cudaGraphLaunch: the check on replay_gpu_us",
           "gpu", 0.01),
    Metric("graphs", "", "graphs captured"),
    Metric("nodes", "", "nodes of all graphs captured"),
    Metric("pool_bytes", "bytes", "memory that the private pools of its graphs hold"),
    Metric("moved_bytes", "bytes", "bytes that a step must read and write at least: over the bandwidth, a floor of its time"),
    # Of bucketing policies: a whole trace of requests.
    Metric("trace_gpu_ms", "ms", "all requests of the trace by events around it, graphs captured before: input copy, replay and "
           "output clone", "gpu", 0.03, _TRACES),
    Metric("trace_capture_ms", "ms", "warm-up and capture of all its graphs", "host", 0.10, pace="capture_pace_us"),
    Metric("input_copy_ms", "ms", "of the trace, the copies into the static inputs alone", "gpu", 0.03),
    Metric("output_clone_ms", "ms", "of the trace, the clones of the static outputs alone", "gpu", 0.03),
    Metric("buckets", "", "buckets that the policy makes"),
    Metric("real_elements", "", "elements asked for: the sum of the trace's lengths"),
    Metric("padded_elements", "", "elements computed, padding included; padding waste is padded minus real over padded"),
    Metric("wrong_results", "", "requests whose result differs from that of eager code: 0 where the policy is correct"),
    Metric("reserved_bytes", "bytes", "memory reserved with one pool shared by all graphs, captured largest first"),
    Metric("own_pools_reserved_bytes", "bytes", "memory reserved where each graph has a pool of its own"),
    # Of the host.
    Metric("capture_pace_us", "us", "a fixed piece of the host's work beside each capture: no cost, but how fast the host was", "pace"),
    Metric("steady_pace_us", "us", "the same in each round of the times of replays and eager steps", "pace"),
)  # fmt: skip

METRICS: Final[dict[str, Metric]] = {metric.name: metric for metric in _TABLE}


def is_headline(subject: str, metric: str) -> bool:
    """True where the gate looks at this metric of this subject; an unknown metric is never one."""
    return metric in METRICS and METRICS[metric].is_headline(subject)
