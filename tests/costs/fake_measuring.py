"""Stands in for the measuring side: says synthetic lines, as FAKE_MEASURING tells it to. Nothing of it is a measurement."""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    """Read a request, answer with a line a subject and an end, or misbehave."""
    asked = json.load(sys.stdin)
    release = os.environ.get("FAKE_TORCH_RELEASE", "2.99.0+fake")
    with open(os.environ["TRACE"], "a", encoding="utf-8") as file:
        file.write(f"{release}\n")
    visit = sum(1 for _ in open(os.environ["TRACE"], encoding="utf-8"))  # noqa: SIM115
    told = {number: deed for number, _, deed in (word.partition(":") for word in os.environ.get("FAKE_MEASURING", "").split(","))}
    deed = told.get(str(visit), told.get(release, told.get("all", "")))
    timed = {} if asked["engine"] == "model" else {"replay_gpu_us": [10.123456789, 11.0, 30.0]}
    print("a library says hello", file=sys.stderr)
    for name in [*asked["workloads"], *(case["name"] for case in asked["cases"])]:
        if deed == "hang":
            time.sleep(600)
        if deed == "die":
            sys.exit("no device")
        if deed == "crash":
            os.kill(os.getpid(), 11)
        if deed == "mumble":
            print("not json", flush=True)
        answer = {"subject": name, "version": "v1", "metrics": {"nodes": [3], **timed}, "lacks": {"record_ms": "too old"}}
        if deed == "nan":
            answer["metrics"]["replay_gpu_us"] = [float("nan")]
        if deed == "unknown":
            answer["metrics"]["speed"] = [1]
        if deed == "fail" or name.endswith("/bug"):
            answer = {"subject": name, "failed": "RuntimeError: [no] capture"}
        print(json.dumps(answer), flush=True)
    imported = "2.0.0" if deed == "other" else release
    clock = 1200 if deed == "slow" else 1980
    throttled = {"throttled": ["SW thermal slowdown"], "capped": ["power cap"]}.get(deed, [])
    end = {"sm_clock_mhz": clock, "temperature_c": 45, "throttled": throttled, "environment": {"torch": {"version": imported}}}
    print(json.dumps({"end": end}), flush=True)


main()
