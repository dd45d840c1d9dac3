"""Streams and threads around a capture, worked out from CUDA's documentation of stream capture and from torch's allocator.

New memory for a stream that is not captured is a cudaMalloc, which a capture of the mode "global" forbids to every thread. In a
thread of its own the error is that thread's; what the capture shows is the one at its end.
"""

DONE = ("correct", [4, 6, 8])
ONCE = ("correct", [1, 1, 1])

EXPECTED = {
    "streams-threads/unjoined-bug": ("raised: AcceleratorError: CUDA error: capturing stream has unjoined work", []),
    "streams-threads/unjoined-fix": DONE,
    "streams-threads/default-stream-bug": ("raised: operation would make the legacy stream depend on a capturing blocking stream", []),
    "streams-threads/isolation-bug": ("raised: dependency created on uncaptured work in another stream", []),
    "streams-threads/isolation-fix": DONE,
    "streams-threads/thread-bug": ("wrong", [2, 3, 4]),  # Without the doubling.
    "streams-threads/thread-fix": DONE,
    "streams-threads/thread-memory-bug": ("raised: AcceleratorError: CUDA error: operation failed due to a previous error during capture", []),
    "streams-threads/thread-memory-fix-local": DONE,
    "streams-threads/thread-memory-fix-before": DONE,
    "streams-threads/side-memory-bug": ("raised: AcceleratorError: CUDA error: operation not permitted when stream is capturing", []),
    "streams-threads/side-memory-fix": DONE,
    "streams-threads/replay-in-thread": DONE,
    "streams-threads/capture-in-thread": DONE,
    "streams-threads/background-bug": ("wrong", [1, 2, 3]),
    "streams-threads/background-fix": ONCE,
}
