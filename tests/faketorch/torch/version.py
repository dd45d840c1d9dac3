"""What a build says of itself."""

import os

git_version = "0123456789abcdef"
cuda = os.environ.get("FAKE_TORCH_CUDA", "13.0") or None
