"""The cuda backend: PyTorch on an NVIDIA GPU, a program replayed as one CUDA graph."""
