"""What is committed under results/: nothing of the machine that it was made on but what its environment says, and what pages say of it."""

from __future__ import annotations

import re

from toybox import SOURCE

from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.metrics import METRICS

# A frame of a Python traceback in a file of some folder; files of torch, of ours and of the case stand there without it.
_ABSOLUTE = re.compile(r'File \\"/[^"]*')


def test_no_folder_of_a_machine_is_stored() -> None:
    """No traceback that is stored names a file by its place on the machine that ran it."""
    stored = [*(SOURCE.parent / "results" / "verdicts").rglob("*.json")]
    assert stored
    found = {(path.name, match) for path in stored for match in _ABSOLUTE.findall(path.read_text(encoding="utf-8"))}
    assert not found


def test_the_models_counts_are_the_gpus_as_its_page_says() -> None:
    """Graphs, buckets, elements and bytes agree; nodes of what multiplies matrices do not, and docs/model.md says of how many."""
    counted: dict[str, dict[tuple[str, str, str], tuple[float, ...]]] = {"h200": {}, "model": {}}
    for costs in CostStore(SOURCE.parent / "results").everything():
        for subject, metric, values in costs.series():
            if METRICS[metric].exact:
                counted[costs.environment.machine][costs.environment.release, subject, metric] = tuple(sorted(set(values)))
    both = counted["h200"].keys() & counted["model"].keys()
    differing = {key for key in both if counted["h200"][key] != counted["model"][key]}
    assert {key[1:] for key in differing} <= {("mlp/256", "nodes"), ("decoder/128", "nodes")}
    assert f"{len(both) - len(differing)} of {len(both)}" in (SOURCE.parent / "docs" / "model.md").read_text(encoding="utf-8")
