"""Hooks of submodules that a graphed module does not call: `make_graphed_callables` replaces the outer forward alone."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Final

import torch

from replaydrift.model.findings import Finding, Findings
from replaydrift.model.observer_records import Replay
from replaydrift.model.observer_sites import Site, here

_REGISTRATIONS: Final = (
    "register_forward_pre_hook", "register_forward_hook", "register_full_backward_pre_hook", "register_full_backward_hook",
)  # fmt: skip
_CALLS: Final = ("_call_impl", "_wrapped_call_impl")


class Hooks:
    """Remembers graphed modules, and the line of each hook that is set on one of their submodules."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._graphed: list[tuple[weakref.ref[torch.nn.Module], Site]] = []
        self._set: list[tuple[weakref.ref[torch.nn.Module], Any, Site]] = []

    def install(self) -> None:
        """Listen to `make_graphed_callables` and to the registration of hooks."""
        module: Any = torch.nn.Module
        for name in _REGISTRATIONS:
            setattr(module, name, self._listening(getattr(module, name)))
        graphing = torch.cuda.make_graphed_callables

        def make_graphed_callables(callables: Any, *args: Any, **kwargs: Any) -> Any:
            made = graphing(callables, *args, **kwargs)
            for one in callables if isinstance(callables, tuple) else (callables,):
                if isinstance(one, torch.nn.Module):
                    self._graphed.append((weakref.ref(one), here()))
            return made

        make_graphed_callables.__doc__ = graphing.__doc__
        torch.cuda.make_graphed_callables = make_graphed_callables

    def _listening(self, register: Any) -> Any:
        def registering(module: torch.nn.Module, hook: Any, *args: Any, **kwargs: Any) -> Any:
            handle = register(module, hook, *args, **kwargs)
            if self._graphed:
                self._set.append((weakref.ref(module), handle, here()))
            return handle

        registering.__name__, registering.__doc__ = register.__name__, register.__doc__
        return registering

    def replayed(self, replay: Replay) -> None:
        """Report hooks that the module whose call this replay is does not reach."""
        if not self._set:
            return
        called = _modules_being_called()
        for reference, graphed_at in self._graphed:
            module = reference()
            if module is None or not any(module is other for other in called):
                continue
            inner = [other for other in module.modules() if other is not module]
            for owner, handle, site in self._set:
                if any(owner() is other for other in inner) and _is_set(handle):
                    self._report(site, graphed_at, replay.site)

    def _report(self, site: Site, graphed_at: Site, called_at: Site) -> None:
        key = ("hooks-not-called", site, graphed_at)
        if self._findings.seen(*key):
            return
        why = "The module that the hook is set on lies inside a graphed module, whose call replays a graph: nothing calls the modules within."
        fix = "Set the hook on the graphed module itself, or graph the inner modules one by one."
        self._findings.add(key, Finding("hooks-not-called", site, why, fix, [("graphed", graphed_at), ("called", called_at)]))


def _is_set(handle: Any) -> bool:
    hooks = handle.hooks_dict_ref()
    return hooks is not None and handle.id in hooks


def _modules_being_called() -> list[Any]:
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _CALLS and "self" in frame.f_locals:
            found.append(frame.f_locals["self"])
        frame = frame.f_back  # type: ignore[assignment]
    return found
