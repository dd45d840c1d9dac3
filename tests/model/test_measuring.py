"""The measuring side where it would run on a GPU, on the CPU model: that it runs, and what comes out; its times mean nothing here."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

TRACE = [5, 40, 17, 64, 3]


def wish(policy, buckets, **more):
    """A policy over the trace of these tests, as a request says it."""
    return {"model": "decoder", "trace": TRACE, "name": "short", "policy": policy, "buckets": buckets, "shared_pool": True} | more


def test_a_workload_has_all_metrics_that_need_no_cuda_runtime():
    """Every metric of the table that is a workload's, several samples each, and the reason for the one that is lacking."""
    from replaydrift.measuring import workload_costs
    from replaydrift.measuring.planting import Plant

    found, reading = workload_costs.measure("chain/10", Plant(), time.perf_counter())

    assert reading is None
    assert set(found.metrics) == {
        *("capture_ms", "record_ms", "instantiate_ms", "first_replay_us", "warmup_ms"),
        *("replay_gpu_us", "replay_host_us", "eager_gpu_us", "eager_host_us", "capture_pace_us", "steady_pace_us"),
        *("graphs", "nodes", "pool_bytes", "moved_bytes"),
    }
    assert {metric for metric, samples in found.metrics.items() if len(samples) < 5} == {
        *("warmup_ms", "graphs", "nodes", "pool_bytes", "moved_bytes")
    }
    assert set(found.lacks) == {"bare_loop_gpu_us"}
    assert len(found.metrics["capture_ms"]) == len(found.metrics["record_ms"]) == len(found.metrics["capture_pace_us"])
    assert len(found.metrics["replay_host_us"]) == len(found.metrics["steady_pace_us"])


def test_work_planted_for_the_gpu_shows_in_its_time_and_not_in_the_counts():
    """A fifth more is a fifth more, by the assumed durations of the model; nodes are counted of the workload itself."""
    from replaydrift.measuring import workload_costs
    from replaydrift.measuring.planting import Plant

    plain, _ = workload_costs.measure("chain/100", Plant(), time.perf_counter())
    slower, _ = workload_costs.measure("chain/100", Plant(gpu=1.2), time.perf_counter())

    assert slower.metrics["replay_gpu_us"][0] == pytest.approx(1.2 * plain.metrics["replay_gpu_us"][0], rel=0.03)
    assert slower.metrics["nodes"] == plain.metrics["nodes"] == [100]


def test_host_time_planted_in_a_call_makes_it_longer():
    """The call returns later by the share that was asked for, however long it takes itself."""
    from replaydrift.measuring.planting import more_host_time
    from replaydrift.measuring.timing import Instruments, Stopwatch

    def call():
        until = time.perf_counter_ns() + 2_000_000
        while time.perf_counter_ns() < until:
            pass

    stopwatch = Stopwatch(Instruments.of_torch())
    slower = more_host_time(call, 1.5, stopwatch)
    begun = time.perf_counter()
    slower()

    assert time.perf_counter() - begun >= 0.0029


def case_of(text):
    """A case of this text, as a request says it."""
    path = Path(tempfile.mkdtemp()) / "toy.py"
    path.write_text("import torch\n" + text)
    return {"name": "toy/behaviour", "path": str(path), "function": "behaviour", "version": "abc", "options": {}, "scale": 1.0}


def test_a_case_has_the_costs_of_its_captures_and_of_the_replay_of_its_graphs():
    """A case with two graphs: each sample of a capture is their sum, and a replay is that of both."""
    from replaydrift.measuring import case_costs

    case = case_of(
        "def behaviour():\n"
        "    x = torch.zeros(4, device='cuda')\n"
        "    graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()\n"
        "    for graph in graphs:\n"
        "        with torch.cuda.graph(graph):\n"
        "            x.add_(1)\n"
        "    yield 'capture', x\n"
        "    graphs[0].replay()\n"
        "    yield 'replay', x\n"
    )
    found, _ = case_costs.measure(case, time.perf_counter())
    shutil.rmtree(Path(case["path"]).parent)

    assert found.metrics["graphs"] == [2]
    assert found.metrics["nodes"] == [2]
    assert {"capture_ms", "record_ms", "instantiate_ms", "replay_gpu_us", "replay_host_us"} <= set(found.metrics)
    assert len(found.metrics["capture_ms"]) == len(found.metrics["capture_pace_us"])
    # On the model's clock a replay takes the host 8 µs and a kernel 2 µs: two replays one after the other are 16 µs.
    assert found.metrics["replay_gpu_us"][0] == pytest.approx(16.0, rel=0.01)
    assert found.lacks == {}


def test_a_case_about_what_keep_graph_changes_keeps_its_other_costs():
    """Where a case fails with graphs that are kept, its parts and its nodes are lacking, and the reason is told."""
    from replaydrift.measuring import case_costs

    case = case_of(
        "def behaviour():\n"
        "    graph = torch.cuda.CUDAGraph()\n"
        "    with torch.cuda.graph(graph):\n"
        "        x = torch.zeros(4, device='cuda').add_(1)\n"
        "    try:\n"
        "        graph.instantiate()\n"
        "    except RuntimeError:\n"
        "        graph.replay()\n"
        "        yield 'replay', x\n"
        "    else:\n"
        "        raise AssertionError('it is not meant to be called here')\n"
    )
    found, _ = case_costs.measure(case, time.perf_counter())
    shutil.rmtree(Path(case["path"]).parent)

    assert {"capture_ms", "replay_gpu_us", "graphs", "pool_bytes"} <= set(found.metrics)
    why = "the case raises AssertionError where its graphs are made with keep_graph=True"
    assert found.lacks == dict.fromkeys(("record_ms", "instantiate_ms", "nodes"), why)


def test_a_case_that_has_no_graph_left_at_its_end_has_no_replay():
    """Graphs that were dropped or reset are neither replayed nor counted in the pools, but their captures are."""
    from replaydrift.measuring import case_costs

    case = case_of(
        "def behaviour():\n"
        "    graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()\n"
        "    for graph in graphs:\n"
        "        with torch.cuda.graph(graph):\n"
        "            x = torch.zeros(4, device='cuda')\n"
        "    graphs[0].reset()\n"
        "    del graphs, graph\n"
        "    yield 'replay', 1\n"
    )
    found, reading = case_costs.measure(case, time.perf_counter())
    shutil.rmtree(Path(case["path"]).parent)

    assert reading is None
    assert found.metrics["graphs"] == [2]
    assert found.metrics["pool_bytes"] == [0]
    assert found.lacks == dict.fromkeys(("replay_gpu_us", "replay_host_us"), "the case keeps none of its graphs until its end")


def test_a_graph_that_one_run_leaves_to_the_collector_spoils_no_capture_of_the_next():
    """A graph in a circle with its own output is collected between runs, not while another is captured."""
    from replaydrift.measuring import case_costs

    case = case_of(
        "import gc\n"
        "def behaviour():\n"
        "    graph, circle = torch.cuda.CUDAGraph(), []\n"
        "    with torch.cuda.graph(graph):\n"
        "        gc.collect()\n"
        "        x = torch.zeros(4, device='cuda').add_(1)\n"
        "    circle += [graph, circle]\n"
        "    yield 'replay', 1\n"
    )
    found = case_costs.count(case)
    shutil.rmtree(Path(case["path"]).parent)

    assert found.metrics["graphs"] == [1]
    assert found.lacks == {}


def test_a_case_that_stands_for_a_larger_one_counts_the_memory_of_that_one():
    """A KiB at scale 4096 is a pool of 4 MiB, and the next case is what it says again."""
    from replaydrift.measuring import case_costs

    case = case_of(
        "def behaviour():\n"
        "    graph = torch.cuda.CUDAGraph()\n"
        "    with torch.cuda.graph(graph):\n"
        "        x = torch.ones(256, device='cuda')\n"
        "    yield 'replay', 1\n"
    )
    large, small = case_costs.count(case | {"scale": 4096.0}), case_costs.count(case)
    shutil.rmtree(Path(case["path"]).parent)

    # A request of 4 MiB comes from a segment of 20 MiB, one of a KiB from a segment of 2 MiB.
    assert (large.metrics["pool_bytes"], small.metrics["pool_bytes"]) == ([20 << 20], [2 << 20])


def test_all_policies_of_a_trace_are_measured_in_turn():
    """Eager code lacks copies and captures, and says why; a policy has them."""
    from replaydrift.measuring import bucketing
    from replaydrift.measuring.planting import Plant

    begun = []
    wishes = [wish("eager", None), wish("max", [64])]
    plants = {"bucketing/decoder/short/max": Plant(gpu=1.5)}
    (eager, padded), _ = bucketing.measure_all(wishes, plants, time.perf_counter(), begun.append)

    assert begun == 2 * ["bucketing/decoder/short/eager", "bucketing/decoder/short/max"]
    assert set(eager.lacks) == {"trace_capture_ms", "input_copy_ms", "output_clone_ms"}
    assert len(eager.metrics["trace_gpu_ms"]) == len(padded.metrics["trace_gpu_ms"]) == 3
    assert padded.lacks == {}
    assert len(padded.metrics["trace_capture_ms"]) == len(padded.metrics["capture_pace_us"])
    assert padded.metrics["padded_elements"] == [5 * 64]


def test_a_stale_tail_that_leaks_makes_a_result_wrong():
    """Where the graph is not told the length of a request, what an earlier one left in the bucket shows in the mean."""
    from replaydrift.measuring import bucketing

    requests, stream = bucketing.prepare(wish("max", [64]))
    graphs = bucketing.Graphs(requests, [64], stream, shared=True)
    assert requests.wrong(graphs.serve) == 0

    plain_put = graphs.put

    def put_and_forget_the_length(number):
        plain_put(number)
        graphs._length.fill_(64)

    graphs.put = put_and_forget_the_length

    assert requests.wrong(graphs.serve) == len(TRACE) - TRACE.count(64)
    assert requests.wrong(graphs.serve, most=2) == 2


def test_one_shared_pool_holds_less_than_a_pool_for_each_graph_and_the_order_of_policies_does_not_matter():
    """Memory is counted from the same start, whichever policy comes first."""
    from replaydrift.measuring import bucketing

    wishes = [wish("powers", [8, 16, 32, 64]), wish("max", [64]), wish("even", [22, 43, 64])]
    forwards = {found.subject: found.metrics for found in bucketing.count_all(wishes, lambda _name: None)}
    backwards = {found.subject: found.metrics for found in bucketing.count_all(wishes[::-1], lambda _name: None)}

    assert forwards == backwards
    powers = forwards["bucketing/decoder/short/powers"]
    assert powers["reserved_bytes"] < powers["own_pools_reserved_bytes"]


def test_another_trace_or_other_buckets_are_another_version():
    """Costs of policies compare only where they serve the same requests with the same buckets from the same pools."""
    from replaydrift.measuring.serving import version

    versions = [
        version("decoder", [64], TRACE, shared=True),
        version("decoder", [32, 64], TRACE, shared=True),
        version("decoder", None, TRACE, shared=True),
        version("decoder", [64], [5], shared=True),
        version("mlp", [64], TRACE, shared=True),
        version("decoder", [64], TRACE, shared=False),
    ]

    assert len(set(versions)) == 6
    assert version("decoder", (64,), tuple(TRACE), shared=True) == versions[0]


def test_a_watch_takes_the_parts_of_a_capture_apart():
    """Recording and instantiation have a time each, and all graphs are seen, those of make_graphed_callables too."""
    from replaydrift.measuring.watching import Watch, watching

    module, sample = torch.nn.Linear(4, 4).cuda(), torch.zeros(2, 4, device="cuda")
    plain = torch.cuda.CUDAGraph
    with watching(Watch(apart=True)) as watch:
        graphed = torch.cuda.make_graphed_callables(module, (sample,))

    assert torch.cuda.CUDAGraph is plain
    assert watch.captures == len(watch.record_ms) == len(watch.instantiate_ms) == 2
    assert watch.capture_ms == []
    assert watch.nodes > 2
    assert graphed(sample).shape == (2, 4)


def test_a_watched_graph_shows_the_arguments_of_torchs_own():
    """Code that asks what torch offers gets the same answer while it is measured."""
    import inspect

    from replaydrift.measuring.watching import watching

    def signatures():
        return [inspect.signature(getattr(torch.cuda.CUDAGraph, name)) for name in ("__new__", "capture_begin", "capture_end", "replay")]

    plain = signatures()
    with watching():
        assert signatures() == plain


def test_a_replay_that_gives_another_result_than_eager_code_is_noticed():
    """A workload whose graph does something else is an error, not a cost."""
    from replaydrift.measuring.workloads import workload

    chain, network = workload("chain/3"), workload("mlp/64")

    with pytest.raises(RuntimeError, match="another result than eager code: they differ by 3"):
        chain.check(lambda: None, chain.step())
    with pytest.raises(RuntimeError, match="another result"):
        network.check(lambda: None, network.step())
