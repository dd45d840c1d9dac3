"""The group `graphed-refusals`: the texts stand in each release's `torch/cuda/graphs.py`, in autograd and in checkpoint."""

EXPECTED = {
    "graphed-refusals/autocast-cache-bug": ("raised: Please set `cache_enabled=False`.", []),
    "graphed-refusals/hooks-before-bug": ("raised: Modules must not have hooks registered at the time they are passed.", []),
    "graphed-refusals/buffer-bug": ("raised: All buffers must have ``requires_grad=False``.", []),
    "graphed-refusals/number-bug": ("raised: for each callable must contain only Tensors.", []),
    "graphed-refusals/fix-number-closed-over": ("correct", [2]),
    "graphed-refusals/keyword-bug": ("raised: got an unexpected keyword argument 'input'", []),
    "graphed-refusals/unused-input-bug": ("raised: The differentiated Tensor at index 1 appears to not have been used", []),
    "graphed-refusals/unused-input-fix": ("correct", [2]),
    "graphed-refusals/double-backward-bug": ("raised: element 0 of tensors does not require grad", []),
    "graphed-refusals/checkpoint-reentrant-bug": ("raised: torch.utils.checkpoint is incompatible with .grad()", []),
    "graphed-refusals/checkpoint-fix": ("correct", [2]),
}

OTHERWISE = {
    "graphed-refusals/unused-input-bug": ((2, 0), (2, 12), ("raised: One of the differentiated Tensors appears to not have been used", [])),
}
