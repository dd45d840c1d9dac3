"""Graphs that the compiler captures: `torch.compile(mode="reduce-overhead")`, what it takes care of, and what it asks for.

Here torch itself warms up, captures, copies inputs in and decides when memory may be used again. Frozen numbers and moved
inputs are its business, and it guards both. Outputs lie in its pool all the same: they live until the next call, and who
touches one later is told so by an error where a graph of one's own would give wrong numbers.

Mechanism: frozen pointer
Source: https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
"""

import importlib.metadata
import importlib.util
import re
import shutil
import unittest

import torch

CALLS = 4


def _compile(function):
    """The function, compiled to run as graphs; that takes triton, which takes a C compiler and a GPU."""
    if torch.version.cuda is None or "model" in torch.cuda.get_device_name().lower():
        raise unittest.SkipTest("needs a GPU that runs compiled kernels")
    wanted = next((line for line in importlib.metadata.requires("torch") or () if line.startswith("triton")), "triton")
    installed = importlib.metadata.version("triton") if importlib.util.find_spec("triton") else "none"
    if not re.match(r"triton\W*" + re.escape(".".join(installed.split(".")[:2]) + "."), wanted):
        raise unittest.SkipTest(f"needs the triton of this release, {wanted.partition(';')[0]}; installed is {installed}")
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        raise unittest.SkipTest("needs a C compiler, which triton calls")
    return torch.compile(function, mode="reduce-overhead")


def _full(number, **options):
    return torch.full((4,), float(number), device="cuda", **options)


def _double(x):
    return x * 2


def eager():
    """Twice 0, 1, 2, 3, kept in a list: 0, 2, 4, 6."""
    yield from (("replay", y) for y in [_double(_full(number)) for number in range(CALLS)])


def used_at_once():
    """Outputs that are read before the next call are those of eager mode, though each input is another tensor."""
    double = _compile(_double)
    for number in range(CALLS):
        yield "replay", double(_full(number))


def kept_bug():
    """Outputs of several calls can be kept.

    Seen instead: a `RuntimeError` as soon as an old one is read, which says that a later run has overwritten it.
    """
    double = _compile(_double)
    yield from (("replay", y.tolist()) for y in [double(_full(number)) for number in range(CALLS)])


def fix_clone():
    """Copies that were made before the next call can be kept."""
    double = _compile(_double)
    yield from (("replay", y) for y in [double(_full(number)).clone() for number in range(CALLS)])


def fix_setting():
    """With a setting that came in 2.14 the compiler copies what is still alive when the next call begins."""
    chosen = importlib.import_module("torch._inductor.config").triton
    if not hasattr(chosen, "cudagraph_trees_generation_cloning"):
        raise unittest.SkipTest("needs the setting cudagraph_trees_generation_cloning, which this release has not")
    double = _compile(_double)
    chosen.cudagraph_trees_generation_cloning = "user_visible"
    yield from (("replay", y) for y in [double(_full(number)) for number in range(CALLS)])


def chain_eager():
    """Two functions, one after the other: 4, 4, 4, 4."""
    for _ in range(CALLS):
        yield "replay", _double(_double(_full(1)))


def chain_bug():
    """The output of one compiled function can be the input of another.

    Seen instead: a `RuntimeError`. The second function begins a new generation, with which the first one's output is gone:
    https://github.com/pytorch/pytorch/issues/160281
    """
    first, second = _compile(lambda x: x * 2), _compile(lambda y: y * 2)
    for _ in range(CALLS):
        yield "replay", second(first(_full(1)))


def chain_fix():
    """One compiled function that calls both is one generation."""
    both = _compile(lambda x: _double(_double(x)))
    for _ in range(CALLS):
        yield "replay", both(_full(1))


def python_number_eager():
    """1 times 0, 1, 2, 3."""
    for number in range(CALLS):
        yield "replay", _full(1) * number


def python_number():
    """A Python number follows its argument, since the compiler checks it and compiles anew where it must: 0, 1, 2, 3."""
    times = _compile(lambda x, number: x * number)
    for factor in range(CALLS):
        yield "replay", times(_full(1), factor)


def dropout_eager():
    """Masks of dropout are all different: 1, 2, 3, 4."""
    yield from (("replay", count) for count in range(1, CALLS + 1))


def dropout():
    """Each call of a compiled dropout has a mask of its own: 1, 2, 3, 4 different ones."""
    drop, seen = _compile(lambda x: torch.nn.functional.dropout(x, p=0.5)), set()
    for _ in range(CALLS):
        seen.add(tuple(drop(torch.ones(64, device="cuda")).tolist()))
        yield "replay", len(seen)


def _accumulate(layer, weight, begin=lambda: None):
    for _ in range(CALLS):
        begin()
        layer(_full(1)).sum().backward()
        yield "replay", weight.grad.tolist()


def _layer():
    """A weight of 1 in each place, and its product with an input."""
    weight = torch.nn.Parameter(_full(1))
    return weight, lambda x: x * weight


def accumulation_eager():
    """Gradients of 1 that add up: 1, 2, 3, 4."""
    weight, layer = _layer()
    yield from _accumulate(layer, weight)


def accumulation_bug():
    """Gradients of several steps add up in a compiled layer.

    Seen instead: a `RuntimeError`. The gradient of an earlier step lies in the graphs' pool and is gone at the next step:
    https://github.com/pytorch/pytorch/issues/169545. From 2.13 on the text says what to do:
    https://github.com/pytorch/pytorch/pull/184003
    """
    weight, layer = _layer()
    yield from _accumulate(_compile(layer), weight, torch.compiler.cudagraph_mark_step_begin)


def accumulation_fix():
    """A gradient of 0 that is there before the first step lies outside of the pool, and is added to."""
    weight, layer = _layer()
    weight.grad = torch.zeros_like(weight)
    yield from _accumulate(_compile(layer), weight, torch.compiler.cudagraph_mark_step_begin)


def cold_bug():
    """A compiled function can be called for the first time inside a capture of one's own.

    Seen instead: an error. The compiler would have to run while the stream is captured; from 2.14 on it says so itself,
    https://github.com/pytorch/pytorch/issues/185074. Open: what each release before it raises.
    """
    double = _compile(_double)
    x, graph = _full(1), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = double(x)
    graph.replay()
    yield "replay", y


def settings_eager():
    """The settings of 2.11."""
    yield "replay", {"reduce-overhead": {"triton.cudagraphs": True}}
    yield "replay", {"trees": True, "skip_dynamic_graphs": False, "support_input_mutation": True, "dynamic_shape_warn_limit": 8}
    yield "replay", {"unexpected_rerecord_limit": 128, "graph_partition": True}


def settings():
    """The compiler's own settings for graphs have the values of 2.11: trees, partitions, 8 shapes before it warns."""
    config = importlib.import_module("torch._inductor.config")
    triton = config.triton
    yield "replay", {"reduce-overhead": torch._inductor.list_mode_options()["reduce-overhead"]}
    names = "trees", "skip_dynamic_graphs", "support_input_mutation", "dynamic_shape_warn_limit"
    yield "replay", {name: getattr(triton, f"cudagraph_{name}") for name in names}
    yield "replay", {
        "unexpected_rerecord_limit": triton.cudagraph_unexpected_rerecord_limit,
        "graph_partition": config.graph_partition,
    }
