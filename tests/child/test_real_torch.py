"""The harness beside a real torch: on the CPU model, end to end."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from toybox import run_toys

from replaydrift.child.encoding import NotStorableError, encode
from replaydrift.store import Store

torch = pytest.importorskip("torch")

CASE = '''
"""Real tensors.

Mechanism: frozen pointer
"""

import torch


def eager():
    """One and two."""
    x = torch.ones(2, device="cuda")
    yield "warmup", x
    yield "replay", x * 2
    yield "replay", x.sum() * 2


def bug():
    """The graph reads what it was captured with."""
    x = torch.ones(2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        z = x.sum() * 2
    yield "address", {"x": x.data_ptr(), "y": y.data_ptr()}
    yield "warmup", x
    x = torch.full((2,), 7.0, device="cuda")
    graph.replay()
    yield "replay", y
    yield "replay", z + x[0]
'''


def test_a_sweep_on_the_model(tmp_path: Path, store: Store) -> None:
    """Plain torch code runs on the CPU model through the whole harness: values, addresses, time of capture, environment."""
    (tmp_path / "real.py").write_text(CASE)
    swept = run_toys(store, folder=tmp_path, engine="model", attempts=2)
    assert swept.environment.machine == "model"
    assert swept.environment.release == torch.__version__
    assert swept.environment.facts["torch"]["git_version"] == torch.version.git_version
    for attempt in swept.records[0].attempts:
        assert attempt.outcome.text == "wrong"
        assert [cell.observed for cell in attempt.strip] == [[1.0, 1.0], [2.0, 2.0], 11.0]
        assert attempt.capture_ms is not None
        assert attempt.capture_ms > 0
        (step, addresses) = attempt.evidence[0]
        assert step == "address"
        assert isinstance(addresses, dict)
        assert sorted(addresses) == ["x", "y"]
        assert "+0x0" in addresses.values()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn"])
def test_tensors_of_every_kind(dtype: str) -> None:
    """A tensor becomes a number where it has one element, else lists, whatever its dtype."""
    if not hasattr(torch, dtype):
        pytest.skip(f"this torch has no {dtype}")
    one = torch.tensor([1.0]).to(getattr(torch, dtype))
    assert encode(one) == ({"complex": [1.0, 0.0]} if dtype == "complex64" else 1)
    assert encode(one.reshape(1, 1).expand(2, 1).contiguous()) == [[encode(one)], [encode(one)]]


def test_tensors_of_odd_form() -> None:
    """NaN, empty, without dimensions, transposed, sparse, requiring a gradient: all are read; one without values is refused."""
    assert encode(torch.tensor(math.nan)) == {"float": "nan"}
    assert encode(torch.empty(0)) == []
    assert encode(torch.arange(4).reshape(2, 2).t()) == [[0, 2], [1, 3]]
    assert encode(torch.eye(2).to_sparse()) == [[1.0, 0.0], [0.0, 1.0]]
    assert encode(torch.nn.Parameter(torch.ones(1))) == 1.0
    assert encode({"a": (torch.ones(1), None)}) == {"a": [1.0, None]}
    with pytest.raises(NotStorableError, match="'meta' has no values"):
        encode(torch.empty(2, device="meta"))


