"""MOSS-Audio-Tokenizer: a causal transformer codec with residual codebooks.

One code for the layouts of Nano and of the full size.
Specification: spec nano.md, section 5; spec voicegen.md, section 6.
"""
