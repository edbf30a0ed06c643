"""Whether mosstalk computes what the models' own PyTorch code computes.

A dump holds what the original gave on a checkpoint (docs/parity_dump.md). It is made once, where
PyTorch is, and read wherever mosstalk runs.
"""
