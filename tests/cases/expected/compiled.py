"""The group `compiled`: the model runs no compiled kernel, so only what is read from settings has values here."""

NEEDS_A_GPU = ("skipped: needs a GPU that runs compiled kernels", None)

EXPECTED = {
    "compiled/used-at-once": NEEDS_A_GPU,
    "compiled/kept-bug": NEEDS_A_GPU,
    "compiled/fix-clone": NEEDS_A_GPU,
    "compiled/fix-setting": NEEDS_A_GPU,
    "compiled/chain-bug": NEEDS_A_GPU,
    "compiled/chain-fix": NEEDS_A_GPU,
    "compiled/python-number": NEEDS_A_GPU,
    "compiled/dropout": NEEDS_A_GPU,
    "compiled/accumulation-bug": NEEDS_A_GPU,
    "compiled/accumulation-fix": NEEDS_A_GPU,
    "compiled/cold-bug": NEEDS_A_GPU,
    "compiled/settings": (
        "correct",
        [
            {"reduce-overhead": {"triton.cudagraphs": True}},
            {"trees": True, "skip_dynamic_graphs": False, "support_input_mutation": True, "dynamic_shape_warn_limit": 8},
            {"unexpected_rerecord_limit": 128, "graph_partition": True},
        ],
    ),
}

OTHERWISE = {
    "compiled/fix-setting": ((2, 0), (2, 13), ("skipped: needs the setting cudagraph_trees_generation_cloning", None)),
}
