"""An import that takes a while, and touches CUDA where FAKE_TORCH_DYNAMO says so."""

import os

from . import cuda

if os.environ.get("FAKE_TORCH_DYNAMO") == "touches CUDA":
    cuda.init()
