"""One mechanism of the model broken at a time: the cases that need it flip, and no others.

So each verdict of these cases is known to rest on the mechanisms that it should rest on, and on no accident. A case flips when
it no longer comes to the outcome, or to the values, that were worked out by hand for this torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

HERE = Path(__file__).parent
RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
FROZEN_AND_REUSED = {"freed-cuda-input/bug", "shared-pool/bug", "replay-order/bug", "replay-order/fix-capture-order", "parallel-replay/bug"}
# Only where the freed block is handed to the eager steps: see the rule on blocks of generators.
if (2, 12) <= RELEASE <= (2, 13):
    FROZEN_AND_REUSED |= {"dynamic-input/bug"}
DRAWN_IN_A_GRAPH = {"rng/default-auto", "rng/default-registered", "rng/custom-registered"}
if RELEASE >= (2, 14):
    DRAWN_IN_A_GRAPH |= {"rng/custom-unregistered"}

FLIPS = {
    "nothing": set(),
    # The library's kernel needs a block of the cache: new memory for its stream would be refused, and no longer silent.
    "blocks_are_never_handed_out_again": FROZEN_AND_REUSED | {"library-stream/bug"},
    "a_graph_keeps_its_inputs_alive": FROZEN_AND_REUSED | {"freed-cpu-input/bug-pinned"},
    "gradients_accumulate_out_of_place": {"replay-order/bug", "replay-order/fix-capture-order"},
    "work_takes_no_time": {"pinned/bug-eager", "pinned/bug-graph", "parallel-replay/bug"},
    "captures_have_no_pool_of_their_own": {"shared-pool/fix-separate-pools", "parallel-replay/fix-separate-pools"},
    "every_graph_has_its_own_pool": {"shared-pool/bug", "replay-order/bug", "replay-order/fix-capture-order", "parallel-replay/bug"},
    "a_replay_draws_the_numbers_of_the_capture": DRAWN_IN_A_GRAPH,
    "every_stream_is_captured": {"library-stream/bug"},
    "events_do_not_fork_a_capture": {"library-stream/fix-internal-stream"},
    "events_without_a_time_are_not_waited_for": {"pinned/fix-event"},
    "pageable_copies_are_captured": {"freed-cpu-input/bug", "freed-cpu-input/fix-keep-alive", "freed-cpu-input/fix-gpu-tensor"},
    "kernels_are_loaded_before_they_are_launched": {"pinned/bug-eager"},
    # The seed's pinned tensors are older than the captures: tests/model/test_host_memory.py has some that are made inside.
    "captured_pinned_blocks_are_handed_out_again": set(),
    "pinned_blocks_are_never_handed_out_again": {"freed-cpu-input/bug-pinned"},
    "the_host_may_wait_in_a_capture": {"hidden-scalar/grad-scaler-bug"},
    # Those that count what a capture did; for the others one step more or less is the same.
    "a_capture_runs_what_it_records": {"hidden-scalar/lr-bug", "host-state/fix-gpu-tensor", "library-stream/bug"},
    # None of these cases needs it: the allocator's own tests do.
    "free_neighbours_are_not_joined": set(),
}


@pytest.fixture(scope="module")
def flipped() -> dict[str, list[str]]:
    """The cases that flip, by the way in which the model is broken; all in one process with a fork for each."""
    program = subprocess.run(
        [sys.executable, str(HERE / "seed_cases.py"), *FLIPS], capture_output=True, text=True, timeout=280, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1] / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])},
    )  # fmt: skip
    assert program.returncode == 0, program.stderr[-2000:]
    release, *results = map(json.loads, program.stdout.splitlines())
    assert release == torch.__version__
    return dict(results)


@pytest.mark.parametrize("broken", FLIPS)
def test_the_cases_that_need_a_mechanism_flip_without_it(broken: str, flipped: dict[str, list[str]]) -> None:
    """Broken in this way, the model gets exactly these cases wrong."""
    assert set(flipped[broken]) == FLIPS[broken]


def test_every_way_to_break_the_model_is_tried() -> None:
    """The table above and the ways that there are name the same."""
    import ast

    tree = ast.parse((HERE / "broken.py").read_text())

    assert {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} == set(FLIPS)
