"""The group `graphed-callables`: from the autograd function of `make_graphed_callables`, whose tensors are the graphs' own."""

BOTH = [{"y": 2, "x": 2, "weight": 1}, {"y": 6, "x": 2, "weight": 3}]

EXPECTED = {
    "graphed-callables/gradients": ("correct", BOTH),
    "graphed-callables/outputs-bug": ("wrong", [6, 6, 6]),
    "graphed-callables/outputs-fix": ("correct", [2, 4, 6]),
    "graphed-callables/accumulation-bug": ("wrong", [1, 2 + 2, 4 + 4]),  # The buffer, added to itself.
    "graphed-callables/accumulation-fix": ("correct", [1, 3, 7]),
    "graphed-callables/eval-of-a-part-bug": ("wrong", [1]),
    "graphed-callables/eval-of-the-whole": ("correct", [0]),
    "graphed-callables/shape-bug": ("wrong", [[4, 2]]),
    "graphed-callables/shape-more-bug": ("raised: The size of tensor a (4) must match the size of tensor b (5)", []),
    "graphed-callables/input-gradient-bug": ("wrong", ["none"]),
    "graphed-callables/input-gradient-fix": ("correct", [2]),
    "graphed-callables/autocast-after-bug": ("wrong", ["torch.float32"]),
    "graphed-callables/autocast-fix": ("correct", ["torch.float16"]),
}
