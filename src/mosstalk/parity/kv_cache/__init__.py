"""Whether what MOSS-TTS-Nano computes step by step over its caches equals a whole computation."""
