"""Whether what a model computes step by step over its caches equals a whole computation."""
