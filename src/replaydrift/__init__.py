"""What a torch upgrade does to code that captures CUDA graphs."""

__version__ = "0.1.0"
