"""The group `interfaces`: what each release's own Python in `torch/cuda/graphs.py` takes and refuses."""

DOUBLED = [2, 4]
UNKNOWN = "raised: got an unexpected keyword argument"

EXPECTED = {
    "interfaces/old-keywords": ("correct", DOUBLED),
    "interfaces/wrong-keyword-bug": (UNKNOWN, []),
    "interfaces/liveness-by-keyword": ("correct", DOUBLED),
    "interfaces/liveness-by-position": ("raised: 'bool' object is not iterable", []),
    "interfaces/unknown-option-bug": ("raised: unrecognized annotation_config key(s) ['back_end']", []),
    "interfaces/graphed-error-mode": ("correct", DOUBLED),
    "interfaces/instantiate-bug": ("raised: instantiate() is intended to be called by the user only when keep_graph=true", []),
    "interfaces/fix-keep-graph": ("correct", DOUBLED),
    "interfaces/retained-input": ("correct", [2, 2]),
    "interfaces/replay-hook": ("correct", [1, 2]),
    "interfaces/accelerator-graph-bug": ("raised: Graph is not supported on device type: cuda", []),
    "interfaces/old-amp": ("correct", DOUBLED),
    "interfaces/checkpoint-without-mode": ("correct", DOUBLED),
    "interfaces/defaults": (
        "correct",
        [
            {"pool": None, "stream": None, "capture_error_mode": "global"},
            {"num_warmup_iters": 3, "allow_unused_input": False, "pool": None},
            {"keep_graph": False},
        ],
    ),
}

OTHERWISE = {
    "interfaces/liveness-by-keyword": ((2, 0), (2, 12), (UNKNOWN, [])),
    "interfaces/liveness-by-position": [
        ((2, 0), (2, 12), ("raised: positional arguments but 7 were given", [])),
        ((2, 13), (2, 14), ("correct", DOUBLED)),
    ],
    "interfaces/unknown-option-bug": ((2, 0), (2, 14), (UNKNOWN, [])),
    "interfaces/graphed-error-mode": ((2, 0), (2, 13), (UNKNOWN, [])),
    "interfaces/retained-input": ((2, 0), (2, 13), ("raised: object has no attribute 'retain_object'", [])),
    "interfaces/replay-hook": ((2, 0), (2, 13), ("raised: object has no attribute 'register_replay_start_hook'", [])),
    "interfaces/accelerator-graph-bug": ((2, 0), (2, 11), ("raised: module 'torch.accelerator' has no attribute 'Graph'", [])),
}
