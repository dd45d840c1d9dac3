"""One core for what the host does, the same in every process of a block that measures a workload or a trace.

On an H200's host the time of the same capture differed by 20 to 30 % between processes of one release and by 5 to 10 % within one, whether
its samples were reduced to their median or to the lowest; all that a process timed on the host was high or low together. So it is where a
process runs that makes the difference, and no statistic of its samples takes that away.
"""

from __future__ import annotations

import os


def stay_on_one_core() -> int:
    """The number of the core on which this thread runs from now on: the last that this process may use.

    The first is where a machine handles its interrupts. Threads that exist already, such as those that CUDA started with its context,
    keep all cores: they would take turns with this one otherwise.
    """
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core
