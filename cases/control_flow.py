"""A Python `if` inside a captured region is decided once, at capture.

While a graph is captured, Python runs as usual and only the kernels that it launches are recorded. The number that the
`if` looked at is in no kernel, so nothing in the graph can look at it again: each replay repeats the branch that was
taken at capture. A decision that must follow the data is either made on the GPU, from a tensor whose address stays the
same, or made outside the graph.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import importlib.util
import pathlib
import shutil
import unittest

import torch

# Captured at an odd step, the bug is wrong at every even step after it; the loop runs on until that has happened twice.
STEPS = range(8)
CAPTURE_AT = 3

KERNEL = """
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void branch_kernel(const int* i, const int* x, const int* y, int* out, int n) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    int z = i[0] % 2 == 0 ? x[k] + y[k] : x[k] - y[k];  // Read from device memory whenever the kernel runs.
    out[k] = z * x[k];
}

torch::Tensor branch(torch::Tensor i, torch::Tensor x, torch::Tensor y) {
    auto out = torch::empty_like(x);
    int n = static_cast<int>(x.numel());
    branch_kernel<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        i.data_ptr<int>(), x.data_ptr<int>(), y.data_ptr<int>(), out.data_ptr<int>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""


def _ones():
    return torch.ones(1, device="cuda", dtype=torch.int32), torch.ones(1, device="cuda", dtype=torch.int32)


def _branch(i, x, y):
    """2 for an even i, 0 for an odd one, where x and y are 1."""
    z = x + y if i % 2 == 0 else x - y
    return z * x


def _eager_then_graph(run, prepare=lambda i: None):
    """Three steps of `run(i)` in eager mode, its capture with a first replay, then replays.

    `prepare(i)` comes before each and is never captured.
    """
    graph = torch.cuda.CUDAGraph()
    for i in STEPS:
        prepare(i)
        if i < CAPTURE_AT:
            yield "warmup", run(i)
        elif i == CAPTURE_AT:
            with torch.cuda.graph(graph):
                z = run(i)
            graph.replay()
            yield "capture", z
        else:
            graph.replay()
            yield "replay", z


def eager():
    """A branch on the step number alternates: 2, 0, 2, 0 and so on."""
    x, y = _ones()
    for i in STEPS:
        yield "replay", _branch(i, x, y)


def bug():
    """A branch on the step number alternates, as in eager mode.

    Seen instead: 0 for good from step 3 on. The step was odd at capture, so the graph holds a subtraction and no trace
    of the question. Every odd step is right by luck, which is how such a bug passes a test that looks at one value.
    """
    x, y = _ones()
    yield from _eager_then_graph(lambda i: _branch(i, x, y))


def fix_where():
    """A branch on a tensor alternates, since `torch.where` reads the tensor at each replay.

    Both branches run each time, which is the price.
    """
    x, y = _ones()
    step = torch.zeros(1, device="cuda", dtype=torch.int32)

    def run(_):
        return torch.where(step % 2 == 0, x + y, x - y) * x

    yield from _eager_then_graph(run, prepare=step.fill_)


def _compile():
    """The compiled module; it is built before any capture, and a folder of the release's own keeps releases apart."""
    if torch.version.cuda is None or "model" in torch.cuda.get_device_name().lower():
        raise unittest.SkipTest("needs a GPU that runs CUDA kernels")
    missing = [name for name in ("ninja", "c++") if shutil.which(name) is None]
    missing += [] if importlib.util.find_spec("setuptools") else ["setuptools"]
    if missing:
        raise unittest.SkipTest(f"needs what torch builds extensions with: no {', '.join(missing)}")
    from torch.utils import cpp_extension

    cuda = pathlib.Path(cpp_extension.CUDA_HOME or "nowhere")
    if not (cuda / "bin/nvcc").exists() or not (cuda / "include/cuda_runtime.h").exists():
        raise unittest.SkipTest("needs a CUDA compiler: no nvcc with its headers in CUDA_HOME")
    name = "control_flow_" + "".join(c if c.isalnum() else "_" for c in torch.__version__)
    declaration = "torch::Tensor branch(torch::Tensor i, torch::Tensor x, torch::Tensor y);"
    return cpp_extension.load_inline(name, cpp_sources=declaration, cuda_sources=KERNEL, functions=["branch"])


def fix_kernel():
    """A branch in a kernel alternates, since the kernel reads the step from device memory, and only one branch runs.

    The launch must go to the current stream: sent to any other, it would not be recorded at all. The first run compiles
    the kernel, which takes a minute; torch keeps the build, one for each release.
    """
    kernel = _compile()
    x, y = _ones()
    step = torch.zeros(1, device="cuda", dtype=torch.int32)
    yield from _eager_then_graph(lambda _: kernel.branch(step, x, y), prepare=step.fill_)


def fix_multi_graph():
    """One graph a branch, and the CPU that picks one each step: the values alternate.

    The choice never enters a recording. It costs a capture and a pool for each branch.
    """
    x, y = _ones()
    graphs, outputs = [torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()], [None, None]
    for i in STEPS:
        if i < CAPTURE_AT:
            yield "warmup", _branch(i, x, y)
            continue
        if i == CAPTURE_AT:
            for parity, graph in enumerate(graphs):
                with torch.cuda.graph(graph):
                    outputs[parity] = _branch(parity, x, y)
        graphs[i % 2].replay()
        yield "capture" if i == CAPTURE_AT else "replay", outputs[i % 2]


def fix_partial():
    """A branch taken in eager mode, and a graph of what follows it: the values alternate.

    The branch leaves its result in a buffer that the graph reads, so its address stays the same.
    """
    x, y = _ones()
    z = torch.zeros_like(x)

    def branch(i):
        z.copy_(x + y if i % 2 == 0 else x - y)

    yield from _eager_then_graph(lambda _: z * x, prepare=branch)
