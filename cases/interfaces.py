"""What `torch.cuda.graph` and its neighbours may be called with, and what a release took away, added or moved.

An interface changes with fewer words than a kernel. A keyword that a release does not know is a `TypeError` on the first
call, which is loud and easy to mend. An argument that moved is worse: a call by position goes on to mean something else.
The cases call what people call, so that each change shows as a call that stopped or began to work.

Mechanism: interface
Source: https://docs.pytorch.org/docs/stable/generated/torch.cuda.graph.html
"""

import inspect

import torch


def _capture(*args, **kwargs):
    """A graph of `x * 2` captured with these arguments of `torch.cuda.graph`, with its input and output."""
    x = torch.ones(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, *args, **kwargs):
        y = x * 2
    return graph, x, y


def _two_replays(graph, x, y):
    for number in (1, 2):
        x.fill_(number)
        graph.replay()
        yield "replay", y


def eager():
    """Twice 1 and 2: 2, 4."""
    for number in (1, 2):
        yield "replay", torch.full((1,), float(number), device="cuda") * 2


def old_keywords():
    """A call with every keyword that `torch.cuda.graph` had in 2.8 captures: 2, 4."""
    graph, x = torch.cuda.CUDAGraph(), torch.ones(1, device="cuda")
    with torch.cuda.graph(cuda_graph=graph, pool=None, stream=torch.cuda.Stream(), capture_error_mode="global"):
        y = x * 2
    yield "signature", list(inspect.signature(torch.cuda.graph).parameters)
    yield from _two_replays(graph, x, y)


def wrong_keyword_bug():
    """The graph can be passed as `graph=`, a name that one easily writes from memory.

    Seen instead: a `TypeError`, since the keyword is `cuda_graph`. So it was in all releases from 2.8 to 2.15; see
    https://github.com/sgl-project/sglang-omni/pull/2147 for a project that this bit.
    """
    x = torch.ones(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph=graph):
        y = x * 2
    yield from _two_replays(graph, x, y)


def liveness_by_keyword():
    """`check_input_liveness=True` is taken, and changes nothing while the inputs live: 2, 4.

    Raises a `TypeError` before 2.13: https://github.com/pytorch/pytorch/pull/174649
    """
    yield from _two_replays(*_capture(check_input_liveness=True))


def liveness_by_position():
    """The sixth argument after the graph is the check of the inputs: 2, 4.

    Right on 2.13 and 2.14 alone. Releases before have fewer arguments and raise; 2.15 puts `annotation_config` in this
    place, https://github.com/pytorch/pytorch/pull/191999, and tries to read `True` as a table of options.
    """
    yield from _two_replays(*_capture(None, None, "global", False, True))


def unknown_option_bug():
    """A misspelt option of the recording is ignored, as unknown keys of a dict often are.

    Seen instead: a `ValueError` that lists the options, from 2.15 on, where `annotation_config` came; releases before do
    not know that keyword and raise a `TypeError`.
    """
    yield from _two_replays(*_capture(annotation_config={"back_end": "auto"}))


def graphed_error_mode():
    """`make_graphed_callables` hands `capture_error_mode` to its captures: 2, 4.

    Raises a `TypeError` before 2.14: https://github.com/pytorch/pytorch/pull/188832
    """
    sample = torch.ones(1, device="cuda")
    double = torch.cuda.make_graphed_callables(lambda x: x * 2, (sample,), capture_error_mode="thread_local")
    for number in (1, 2):
        yield "replay", double(torch.full((1,), float(number), device="cuda"))


def instantiate_bug():
    """`instantiate()` may be called on any graph, to be sure that it is ready.

    Seen instead: a `RuntimeError`. A graph that was not made with `keep_graph=True` is instantiated when its capture ends.
    """
    graph, x, y = _capture()
    graph.instantiate()
    yield from _two_replays(graph, x, y)


def fix_keep_graph():
    """A graph made with `keep_graph=True` may be instantiated by hand, twice if one likes, or by its first replay: 2, 4.

    From 2.14 on it is Python that instantiates at the first replay, https://github.com/pytorch/pytorch/pull/187740, so
    only callers from C++ notice.
    """
    x = torch.ones(1, device="cuda")
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        y = x * 2
    x.fill_(1)
    graph.replay()
    yield "replay", y
    graph.instantiate()
    graph.instantiate()
    x.fill_(2)
    graph.replay()
    yield "replay", y


def retained_input():
    """A graph can be told to keep an input alive, so that nobody else has to: 2, 2, though another tensor came after.

    Raises an `AttributeError` before 2.14: https://github.com/pytorch/pytorch/pull/190582
    """
    graph, x, y = _capture()
    graph.retain_object(x)
    del x
    other = torch.full((1,), 21.0, device="cuda")
    for _ in range(2):
        graph.replay()
        yield "replay", y
    yield "other", other


def retained_input_eager():
    """Twice 1, two times: 2, 2."""
    for _ in range(2):
        yield "replay", torch.ones(1, device="cuda") * 2


def replay_hook():
    """A hook on a graph runs before each of its replays: 1, 2.

    Raises an `AttributeError` before 2.14: https://github.com/pytorch/pytorch/pull/190602
    """
    graph, _, _ = _capture()
    replays = []
    graph.register_replay_start_hook(replays.append)
    for _ in range(2):
        graph.replay()
        yield "replay", len(replays)


def replay_hook_eager():
    """Two replays, counted: 1, 2."""
    yield "replay", 1
    yield "replay", 2


def accelerator_graph_bug():
    """`torch.accelerator.Graph` captures on the current stream, with no word about CUDA: 2, 4.

    Seen instead: a `RuntimeError` from 2.12 on, where the class came, since nothing implements it for CUDA; so its pull
    request for CUDA says, https://github.com/pytorch/pytorch/pull/190307. Before 2.12 an `AttributeError`.
    """
    x = torch.ones(1, device="cuda")
    graph = torch.accelerator.Graph()
    with torch.cuda.stream(torch.cuda.Stream()), graph:
        y = x * 2
    yield from _two_replays(graph, x, y)


def old_amp():
    """`torch.cuda.amp.autocast()` still works, and warns that its name is `torch.amp.autocast("cuda")` now: 2, 4.

    The old name has been on its way out since 2.4; the release that takes it away will raise here.
    """
    with torch.cuda.amp.autocast(cache_enabled=False):
        graph, x, y = _capture()
    yield from _two_replays(graph, x, y)


def checkpoint_without_mode():
    """`checkpoint` that is not told `use_reentrant` still works, and warns: 2, 4.

    The warning of 2.11 to 2.14 announces an exception for 2.9, which never came; that of 2.15 names no release any more:
    https://github.com/pytorch/pytorch/pull/193720
    """
    for number in (1, 2):
        x = torch.full((1,), float(number), device="cuda", requires_grad=True)
        yield "replay", torch.utils.checkpoint.checkpoint(lambda x: x * 2, x)


def defaults_eager():
    """The defaults of 2.11."""
    yield "replay", {"pool": None, "stream": None, "capture_error_mode": "global"}
    yield "replay", {"num_warmup_iters": 3, "allow_unused_input": False, "pool": None}
    yield "replay", {"keep_graph": False}


def defaults():
    """Who passes nothing gets what 2.11 gave: a pool of its own, three runs to warm up, no graph kept for inspection."""
    captures = inspect.signature(torch.cuda.graph).parameters
    graphed = inspect.signature(torch.cuda.make_graphed_callables).parameters
    made = inspect.signature(torch.cuda.CUDAGraph.__new__).parameters
    yield "replay", {name: captures[name].default for name in ("pool", "stream", "capture_error_mode")}
    yield "replay", {name: graphed[name].default for name in ("num_warmup_iters", "allow_unused_input", "pool")}
    yield "replay", {"keep_graph": made["keep_graph"].default}
