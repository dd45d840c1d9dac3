"""Toys that do what they can to harm the harness.

Mechanism: frozen choice
"""

import ctypes
import os
import signal
import subprocess
import sys
import time


def eager():
    """One."""
    yield "replay", 1


def segfaults():
    """It reads address 0, after one good value."""
    yield "warmup", 1
    ctypes.string_at(0)


def hangs():
    """It never ends, and ignores polite signals."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield "replay", 1
    while True:
        time.sleep(60)


def eats_memory():
    """It takes all memory that it gets."""
    hoard = []
    while True:
        hoard.append(bytearray(os.urandom(1 << 20) * 8))
    yield


def child_eats_memory():
    """A process that it started takes all memory."""
    subprocess.run([sys.executable, "-c", "x = []\nwhile True: x.append(bytearray(b'1' * (1 << 23)))"], check=False)
    yield "replay", 1


def exits_0():
    """It leaves without a word."""
    yield "replay", 1
    os._exit(0)


def exits_3():
    """It leaves without a word."""
    os._exit(3)
    yield


def kills_itself():
    """It sends itself SIGKILL."""
    yield "replay", 1
    os.kill(os.getpid(), signal.SIGKILL)


def forks():
    """Both copies go on to the end."""
    yield "replay", 1
    os.fork()


def forks_and_raises():
    """The copy raises."""
    if os.fork() == 0:
        raise RuntimeError("in the copy")
    yield "replay", 1


def prints_much():
    """50 MB on each stream."""
    line = b"x" * 1023 + b"\n"
    for _ in range(50):
        os.write(1, line * 1024)
        sys.stderr.write("y" * (1 << 20))
    print("the end")
    yield "replay", 1


def yields_nothing():
    """It has nothing to show."""
    if False:
        yield


def yields_evidence_only():
    """It has nothing to compare."""
    yield "note", 1


def yields_a_number():
    """No pair."""
    yield 3


def yields_a_number_for_a_step():
    """No step."""
    yield 3, 3


def yields_an_unknown_step():
    """A slip of the pen."""
    yield "replays", 1


def yields_an_object():
    """What no record can hold."""
    yield "replay", object()


def yields_a_loop():
    """A list that holds itself."""
    value = []
    value.append(value)
    yield "replay", value


def yields_too_much():
    """More than 64 KiB."""
    yield "replay", "x" * 70_000


def yields_too_many_elements():
    """A tensor that should have been reduced."""
    import torch

    yield "replay", torch.tensor([0] * 40_000)


def yields_for_ever():
    """No end."""
    while True:
        yield "replay", 1


def huge_text():
    """An exception of 10 MB."""
    raise RuntimeError("word " * 2_000_000)
    yield


class Unprintable(Exception):
    """Its text raises."""

    def __str__(self):
        raise ValueError("no text")


def unprintable():
    """An exception whose text raises."""
    raise Unprintable
    yield


def system_exit():
    """It asks the interpreter to leave."""
    sys.exit("enough")
    yield


def keyboard_interrupt():
    """As if Ctrl-C were pressed."""
    raise KeyboardInterrupt
    yield


def raises_itself():
    """A chain that bites its tail."""
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first
    raise first
    yield


def closes_everything():
    """It closes descriptors that are not its own."""
    yield "replay", 1
    os.closerange(3, 4096)


def leaves_a_process():
    """A process in the same session goes on."""
    subprocess.Popen(["sleep", "301.25"])
    yield "replay", 1


def leaves_a_daemon():
    """A process with a session of its own goes on."""
    subprocess.Popen(["sleep", "302.25"], start_new_session=True)
    yield "replay", 1


def litters():
    """It writes where it stands."""
    with open("litter.txt", "w") as file:
        file.write("x")
    yield "replay", 1


def changes_streams():
    """It replaces and closes what it prints to."""
    print("before")
    sys.stdout.close()
    sys.stderr = None
    yield "replay", 1
