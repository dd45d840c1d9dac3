"""Host times come from one core, the same for every process; threads that exist already keep theirs."""

from __future__ import annotations

import os
import threading

from replaydrift.measuring.core import stay_on_one_core


def test_only_this_thread_stays_on_one_core() -> None:
    """A thread that was there before keeps all cores; this one gets the last, and so does what it forks."""
    everything = os.sched_getaffinity(0)
    done, seen = threading.Event(), []
    earlier = threading.Thread(target=lambda: (done.wait(30), seen.append(os.sched_getaffinity(0))))
    earlier.start()
    try:
        core = stay_on_one_core()
        assert core == max(everything)
        assert os.sched_getaffinity(0) == {core}
    finally:
        os.sched_setaffinity(0, everything)
        done.set()
        earlier.join()
    assert seen == [everything]
