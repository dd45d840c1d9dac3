"""What a sweep saw end early is not measured once more; everything else is."""

from __future__ import annotations

from typing import Any

from making import environment, record

from replaydrift.costs.refused import refused
from replaydrift.store import Store

HERE = environment("2.14.1+cu130")


def asked(*names: str, version: str = "v1", **sizes: int) -> list[dict[str, Any]]:
    """These cases, as a request names them."""
    return [{"name": name, "version": version, "options": sizes} for name in names]


def test_what_raised_or_was_skipped_each_time_is_left_out(store: Store) -> None:
    """The sweep's own words stand in the place of its costs."""
    store.write(HERE, [record("raised:RuntimeError: no capture", case="g/bug"), record("skipped:needs a GPU", case="g/fix", kind="fix")])
    found = refused(store, HERE, asked("g/bug", "g/fix", "g/new"))
    assert {name: subject.failed for name, subject in found.items()} == {"g/bug": "RuntimeError: no capture", "g/fix": "needs a GPU"}
    assert not any(subject.metrics for subject in found.values())


def test_everything_else_is_measured(store: Store) -> None:
    """A case that ended well once, another version or size of it, another release, other libraries: nothing is known of those."""
    store.write(HERE, [record("raised:E: x", "raised:E: x", "wrong", case="g/bug"), record("wrong", case="g/other")])
    store.write(environment("2.13.0+cu130"), [record("raised:E: x", case="g/old")])
    assert refused(store, HERE, asked("g/bug", "g/other", "g/old")) == {}
    assert refused(store, environment("2.13.0+cu130"), asked("g/old", version="v2")) == {}
    assert refused(store, environment("2.13.0+cu130"), asked("g/old", elements=10)) == {}
    store.write(environment("2.14.0+cu130", libraries={"triton": None}), [record("skipped:no triton", case="g/old")])
    assert refused(store, environment("2.14.0+cu130", libraries={"triton": "3.8.0"}), asked("g/old")) == {}
    assert set(refused(store, environment("2.14.0+cu130", libraries={"triton": None}), asked("g/old"))) == {"g/old"}
    assert refused(store, environment("2.15.0+cu132"), asked("g/old")) == {}
