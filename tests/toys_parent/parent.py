"""A toy that kills the process that forked it, beside innocent ones."""

import os
import signal
import time


def eager():
    """One."""
    yield "replay", 1


def kills_its_parent():
    """The server dies of it."""
    yield "replay", 1
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(20)


def innocent():
    """It is under way when the server dies."""
    time.sleep(0.3)
    yield "replay", 1


def innocent_too():
    """So is this."""
    time.sleep(0.3)
    yield "replay", 1
