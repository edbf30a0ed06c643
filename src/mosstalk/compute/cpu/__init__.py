"""The cpu backend: our C++ kernels and thread pool, one call for a whole program."""
