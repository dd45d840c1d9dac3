"""What a lost capture leaves behind, each release by its own rules."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled


def _lose(pool=None):
    with torch.cuda.stream(torch.cuda.current_stream()), contextlib.suppress(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph(), pool=pool):
        torch.empty(32 << 20, device="cuda")
        torch.cuda.synchronize()


class TestLostCapture:
    """Each test puts the rules of a release in force that the installed one may not be."""

    @pytest.mark.parametrize(("release", "refused"), [("2.12.1", True), ("2.13.0", False)])
    def test_a_pool_takes_another_capture(self, release, refused):
        """Up to 2.12 the allocator takes a lost capture for one that is still on."""
        from replaydrift.model import rules

        rules.put_in_force(release)
        pool = torch.cuda.graph_pool_handle()
        _lose(pool)
        with pytest.raises(RuntimeError, match="already recording") if refused else contextlib.nullcontext():
            with torch.cuda.graph(torch.cuda.CUDAGraph(), pool=pool):
                torch.ones(1, device="cuda") + 1

    @pytest.mark.parametrize(
        ("release", "text"),
        [("2.12.1", "due to a previous error during capture"), ("2.13.0", 'cpp":2213.*Invalid stream'), ("2.15.0", 'cpp":2362')],
    )
    def test_what_goes_on_in_it_is_refused(self, release, text):
        """An error that was caught spoils what follows: its launch, and from 2.13 on its memory already."""
        from replaydrift.model import rules

        rules.put_in_force(release)
        x = torch.ones(1, device="cuda")
        with pytest.raises(RuntimeError, match="previous error") as lost, torch.cuda.graph(torch.cuda.CUDAGraph()):
            with contextlib.suppress(RuntimeError):
                torch.cuda.synchronize()
            x + 1
        assert re.search(text, str(lost.value.__context__))

    @pytest.mark.parametrize(("release", "kept"), [("2.13.0", 128 << 20), ("2.14.1", 0)])
    def test_memory_is_given_back(self, release, kept):
        """Up to 2.13 the pool of a lost capture is held for ever."""
        from replaydrift.model import rules

        before = torch.cuda.memory_reserved()
        rules.put_in_force(release)
        _lose()
        torch.cuda.empty_cache()

        assert torch.cuda.memory_reserved() - before == kept

    @pytest.mark.parametrize(("release", "refused"), [("2.11.0", True), ("2.12.1", False)])
    def test_random_numbers_can_be_drawn(self, release, refused):
        """Up to 2.11 the generator refuses until a capture ends well; a graph with dropout is refused its replay too."""
        from replaydrift.model import rules

        rules.put_in_force(release)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.rand(2, device="cuda")
        _lose()
        for draw in (lambda: torch.rand(1, device="cuda"), graph.replay):
            with pytest.raises(RuntimeError, match="Offset increment outside") if refused else contextlib.nullcontext():
                draw()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.ones(1, device="cuda") + 1
        graph.replay()

        assert torch.rand(1, device="cuda").item() < 1


class TestDestroyedInCapture:
    """A graph that dies while another one is captured."""

    @pytest.mark.parametrize(("mode", "lost"), [("global", True), ("thread_local", True), ("relaxed", False)])
    def test_a_graph_that_dies_in_a_capture_loses_it(self, mode, lost):
        """The destructor warns on stderr and the capture's end raises, unless the mode allows such calls."""
        x, old = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(old):
            x + 1
        written = io.StringIO()
        with pytest.raises(RuntimeError, match="previous error") if lost else contextlib.nullcontext(), contextlib.redirect_stderr(written):
            with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode=mode):
                x + 1
                del old

        assert ("not permitted when stream is capturing" in written.getvalue()) == lost

    def test_an_object_without_a_graph_may_die(self):
        """A CUDAGraph that was never captured has nothing that CUDA must destroy."""
        x, old = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x += 1
            del old
        graph.replay()

        assert x.item() == 2
