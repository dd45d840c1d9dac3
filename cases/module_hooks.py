"""Hooks of submodules do not fire once a module is graphed.

`Module.__call__` runs the hooks. `make_graphed_callables` replaces the `forward` of the module it is given by a function
that replays a graph: that module is still called, and its hooks fire, but nothing calls the modules inside. Logging,
caching of activations, changes of gradients in per-layer hooks stop without a word.

Mechanism: missing nodes
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch


def _model_and_input(width):
    """An embedding and two linear layers in a sequence: four modules, five parameters."""
    layers = torch.nn.Embedding(width, width), torch.nn.Linear(width, width), torch.nn.Linear(width, width)
    return torch.nn.Sequential(*layers).cuda(), torch.arange(8, device="cuda")


def _hooks_fired(model, tokens):
    """Hook all modules, call the model once, and return how many hooks fired."""
    fired = []
    for module in model.modules():
        module.register_forward_hook(lambda module, args, output: fired.append(type(module).__name__))
    model(tokens)
    return len(fired)


def _parameters_seen(model, tokens):
    """Hook the top module, call it once, and return how many parameters the hook saw, those of submodules included."""
    names = []

    def hook(module, args, output):
        names.extend(name for name, _ in module.named_parameters(recurse=True))

    model.register_forward_hook(hook)
    model(tokens)
    return len(names)


def eager(width=256):
    """One call fires the hooks of all 4 modules."""
    yield "replay", _hooks_fired(*_model_and_input(width))


def bug(width=256):
    """One call of a graphed model fires the hooks of all 4 modules, as in eager mode.

    Seen instead: 1 fires, that of the top module. The hooks must be set after graphing, since `make_graphed_callables`
    refuses a module that has hooks.
    """
    model, tokens = _model_and_input(width)
    graphed = torch.cuda.make_graphed_callables(model, (tokens,))
    yield "replay", _hooks_fired(graphed, tokens)


def workaround_eager(width=256):
    """A hook of the top module sees all 5 parameters."""
    yield "replay", _parameters_seen(*_model_and_input(width))


def workaround_top_level(width=256):
    """A hook of the graphed module itself fires, and sees all 5 parameters.

    It can do for parameters what hooks of the layers did; for what happens between layers, graph the layers one by one.
    """
    model, tokens = _model_and_input(width)
    graphed = torch.cuda.make_graphed_callables(model, (tokens,))
    yield "replay", _parameters_seen(graphed, tokens)
