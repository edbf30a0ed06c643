"""MOSS-Audio-Tokenizer: a causal transformer codec with residual codebooks.

Specification: spec nano.md, section 5.
"""
