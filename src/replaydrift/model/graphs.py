"""The C layer of `torch.cuda.CUDAGraph`: capture into a private pool, instantiation, replay, and what a graph holds."""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from itertools import count
from typing import Any

from replaydrift.model import blas, conditionals, generators, rules
from replaydrift.model.blocks import Block, PoolId
from replaydrift.model.captures import Capture, Node
from replaydrift.model.clock import CLOCK, DEFAULT_STREAM
from replaydrift.model.costs import COSTS
from replaydrift.model.device import DEVICE
from replaydrift.model.failures import CAPTURE_INVALIDATED, STREAM_CAPTURE_UNSUPPORTED, UNJOINED, cuda_error, lack

_HANDLES = count(0x5EED_0001_0000, 0x40)
_MODES = ("global", "thread_local", "relaxed")


def new_pool_id() -> PoolId:
    """A pool that no graph has yet, as `torch.cuda.graph_pool_handle` gives it."""
    return 0, next(DEVICE.next_pool)


class GraphBase:
    """A graph: nothing, then a capture, then nodes with the pool that holds their memory."""

    def __new__(cls, keep_graph: bool = False, *_more: Any) -> Any:
        """An empty graph."""
        made = super().__new__(cls)
        made._keep = keep_graph
        made._forget()
        made._registered = []
        return made

    def __init__(self, *_arguments: Any, **_more: Any) -> None:
        """All is done in `__new__`, as in C."""

    def __init_subclass__(cls) -> None:
        """Let a subclass that has a `__del__` of its own still give the pool back, as the destructor in C++ does."""
        own = cls.__dict__.get("__del__")
        if own is not None:

            def both(self: Any) -> None:
                own(self)
                GraphBase.__del__(self)

            cls.__del__ = both  # type: ignore[method-assign]

    _keep: bool
    _registered: list[generators.State]

    def _forget(self) -> None:
        self._capture: Capture | None = None
        self._nodes: list[Node] | None = None
        self._pool: PoolId | None = None
        self._origin = DEFAULT_STREAM
        self._side_pools: list[PoolId] = []  # pools of a user's own that were used in the capture
        self._has_exec = False
        self._ended = False
        self._graph_handle = self._exec_handle = 0
        self._random: list[tuple[generators.State, list[int], int]] = []
        self._state_blocks: list[Block] = []

    @property
    def _has_graph_exec(self) -> bool:
        return self._has_exec

    def register_generator_state(self, generator: Any) -> None:
        """Let the generator advance with each replay; from 2.14 on a generator registers itself."""
        notice = rules.use("register-generator-deprecated")
        if notice:
            print(f"[W1 00:00:00.0 CUDAGraph.cpp:0] Warning: {notice} (function register_generator_state)", file=sys.stderr)
        self._register(generators.state_of(generator))

    def _register(self, state: generators.State) -> None:
        state.register(id(self))
        if state not in self._registered:
            self._registered.append(state)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Record the current stream from here on, allocating from `pool`, or from a pool of the graph's own."""
        if capture_error_mode not in _MODES:
            raise RuntimeError(f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}")
        if self._nodes is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance.",
            )
        stream = DEVICE.stream
        if stream == DEFAULT_STREAM:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them on the default stream.)",
            )
        if stream in DEVICE.captures:
            raise cuda_error(STREAM_CAPTURE_UNSUPPORTED)
        if pool is not None and not isinstance(pool, tuple):
            raise TypeError("capture_begin(): incompatible function arguments. The following argument types are supported:")
        asked = tuple(pool) if pool is not None else new_pool_id()
        self._register(generators.default_state())
        for state in self._registered:
            state.written = 0
        DEVICE.begin_recording_to(asked)
        self._pool, self._origin = asked, stream
        capture = Capture(next(DEVICE.next_capture), self._pool, stream, capture_error_mode)
        capture.tails[stream] = frozenset()
        capture.graph_id, capture.graph, capture.pools_before = id(self), weakref.ref(self), DEVICE.pools_entered
        if rules.use("generator-state-blocks") == "default-stream":
            for _ in self._registered:
                capture.state_blocks += generators.state_blocks(DEFAULT_STREAM)
        self._capture = DEVICE.captures[stream] = capture
        if DEVICE.observer is not None:
            DEVICE.observer.capture_began(self, capture)

    def capture_end_pre(self) -> None:
        """Stop recording. A capture that was lost raises here; so does one with work that never came back to its stream."""
        capture = self._capture
        if capture is None or DEVICE.captures.get(capture.origin) is not capture:
            raise RuntimeError("capture_end() called before capture_begin().")
        if DEVICE.stream != capture.origin:
            raise RuntimeError("Capture must end on the same stream it began on.")
        for stream in [stream for stream, other in DEVICE.captures.items() if other is capture]:
            del DEVICE.captures[stream]
        self._state_blocks = capture.state_blocks
        if DEVICE.observer is not None:
            DEVICE.observer.capture_ended(self, capture)
        lost = CAPTURE_INVALIDATED if capture.invalid else UNJOINED if _unjoined(capture) else None
        self._leave_generators(stuck=lost is not None)
        if lost is not None:
            self._capture = None
            DEVICE.allocator.pools[capture.pool].under_way = rules.holds("failed-capture-stays-under-way")
            raise cuda_error(lost)
        self._nodes = capture.nodes
        self._random = [(state, capture.random_bases[state], total) for state, total in capture.generators.items()]
        self._capture = None
        if not capture.nodes:
            warnings.warn(str(rules.text("empty-capture-warns")), UserWarning, stacklevel=4)
        self._ended = True
        self._graph_handle = next(_HANDLES)

    def _leave_generators(self, *, stuck: bool) -> None:
        """Up to 2.11 a lost capture leaves its generators in the state of one that is captured; the next good one frees them."""
        for state in self._registered:
            state.stuck = stuck and rules.holds("failed-capture-keeps-generator")

    def capture_end_post(self) -> None:
        """Nothing more to do: the model keeps no template apart from the nodes."""

    def capture_end(self) -> None:
        """Stop recording, and instantiate unless the graph is to be kept for inspection."""
        self.capture_end_pre()
        if not self._keep:
            GraphBase.instantiate(self)

    def instantiate(self) -> None:
        """Make the graph ready to be replayed."""
        if self._nodes is None:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if self._has_exec and not self._keep:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        self._has_exec = True
        self._exec_handle = next(_HANDLES)

    def replay(self) -> None:
        """Queue all nodes on the current stream, each after those it must follow. The host does not wait."""
        if self._nodes is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        self._has_exec = True
        stream, capture = DEVICE.stream, DEVICE.capture
        if capture is not None:
            self._as_child(capture, stream)
            return
        CLOCK.tick(COSTS.host_replay_us)
        begin = CLOCK.reached(stream)
        for state, base, total in self._random:
            position = state.take(total)
            if total:
                state.written = position
            else:
                position = generators.UNWRITTEN if rules.use("unmoved-generator") == "never-written" else state.written
            CLOCK.push(begin, _setter(base, position))
        if DEVICE.observer is not None:
            DEVICE.observer.replayed(self, self._nodes, stream)
        ends: list[float] = []
        last = begin
        for node in self._nodes:
            start = begin
            for index in node.after:
                start = max(start, ends[index])
            if node.awaits is not None:
                start = max(start, node.awaits._time or 0.0)
            end = start + node.microseconds
            ends.append(end)
            last = max(last, end)
            if node.stamps is not None:
                node.stamps._time = start
            CLOCK.push(end if node.at_end else start, node.work)
        CLOCK.wait(stream, last)
        CLOCK.pump()

    def _as_child(self, capture: Capture, stream: int) -> None:
        """Replayed while another graph is captured: its nodes become part of that graph."""
        if self._random:
            raise lack("a graph with random operators replayed inside another capture")
        assert self._nodes is not None
        before, offset = capture.tails[stream], len(capture.nodes)
        for node in self._nodes:
            after = tuple(index + offset for index in node.after) or tuple(before)
            capture.nodes.append(Node(node.work, node.microseconds, after, node.name, node.at_end, operation=node.operation))
        followed = {index for node in capture.nodes[offset:] for index in node.after}
        ends = frozenset(range(offset, len(capture.nodes))) - followed
        capture.tails[stream] = ends or before

    def reset(self) -> None:
        """Let go of the nodes and of the pool. Blocks that tensors still hold stay theirs."""
        if self._nodes is not None:
            _destroy_in_captures()
        if self._ended:
            blas.graph_ended(self._origin)
        for pool in [*([self._pool] if self._pool else []), *self._side_pools]:
            if pool not in DEVICE.allocator.pools:
                continue
            if pool == self._pool and not self._ended and rules.holds("failed-capture-keeps-pool"):
                DEVICE.allocator.pools[pool].kept = True
            else:
                DEVICE.allocator.release(pool)
        for block in self._state_blocks:
            DEVICE.free(block)
        self._forget()

    def __del__(self) -> None:
        try:
            while self._registered:
                self._registered.pop().unregister(id(self))
            if self._pool is not None:
                GraphBase.reset(self)
        except Exception:  # noqa: BLE001, S110 - at interpreter exit parts of the model are gone
            pass

    def pool(self) -> PoolId:
        """The pool's id."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def pools(self) -> list[PoolId]:
        """The pools that the graph holds."""
        return [self.pool(), *self._side_pools]

    def _retain_pool(self, pool: Any) -> None:
        if self._capture is None:
            raise RuntimeError("CUDAGraph::retain_pool may only be called during capture.")
        if tuple(pool) not in (self._pool, *self._side_pools):
            DEVICE.allocator.hold(tuple(pool))
            self._side_pools.append(tuple(pool))

    @staticmethod
    def get_currently_capturing_graph() -> Any:
        """The graph that records the current stream."""
        if DEVICE.capture is None:
            raise RuntimeError("The current stream is not currently capturing.")
        return DEVICE.capture.graph()

    @staticmethod
    def begin_capture_to_if_node(condition: Any) -> None:
        """Capture what follows into a body that a replay runs if the condition is true then."""
        conditionals.begin(condition, repeats=False)

    @staticmethod
    def begin_capture_to_while_node(condition: Any) -> None:
        """Capture what follows into a body that a replay runs for as long as its handle is true."""
        conditionals.begin(condition, repeats=True)

    @staticmethod
    def set_conditional_handle_for_current_node(condition: Any) -> None:
        """Set the handle of the body that is captured."""
        conditionals.set_handle(condition)

    @staticmethod
    def end_capture_to_conditional_node() -> None:
        """End the body; what follows is the parent's again."""
        conditionals.end()

    def enable_debug_mode(self) -> None:
        """Keep the graph; a dump of it is not in the model."""
        self._keep = True

    def debug_dump(self, *_arguments: Any, **_more: Any) -> None:
        """Not in the model."""
        raise lack("debug_dump: it has no cudaGraph_t to draw")

    def raw_cuda_graph(self) -> int:
        """A number that stands for the cudaGraph_t: it can be compared, and nothing else."""
        if not self._keep:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true",
            )
        if self._nodes is None:
            raise RuntimeError("You cannot access the raw cudaGraph_t instance until capture_end() has been called")
        return self._graph_handle

    def raw_cuda_graph_exec(self) -> int:
        """A number that stands for the cudaGraphExec_t; another one after each `instantiate`."""
        if not self._has_exec:
            raise RuntimeError("You cannot access the raw cudaGraphExec_t instance until instantiate() has been called")
        return self._exec_handle


def _destroy_in_captures() -> None:
    """A graph is destroyed: CUDA forbids that to a thread in a capture, or beside one that is global, and loses the capture."""
    own = threading.get_ident()
    captures = set(DEVICE.captures.values())
    touched = [found for found in captures if found.mode == "global" or (found.mode == "thread_local" and found.thread == own)]
    for capture in touched:
        capture.invalid = True
    if touched:
        notice = rules.text("graph-destroyed-in-capture")
        print(f"[W1 00:00:00.0 CUDAGraph.cpp:0] Warning: CUDA warning: {notice} (function reset)", file=sys.stderr)


def _setter(base: list[int], value: int) -> Any:
    def work() -> None:
        base[0] = value

    return work


def _unjoined(capture: Capture) -> bool:
    """True where a stream that was pulled into the capture has work that the origin does not wait for."""
    reached: set[int] = set()
    queue = list(capture.tails[capture.origin])
    while queue:
        index = queue.pop()
        if index not in reached:
            reached.add(index)
            queue.extend(capture.nodes[index].after)
    return any(tails - reached for stream, tails in capture.tails.items() if stream != capture.origin)


def is_current_stream_capturing() -> bool:
    """What `torch.cuda.is_current_stream_capturing` asks."""
    return DEVICE.capture is not None
