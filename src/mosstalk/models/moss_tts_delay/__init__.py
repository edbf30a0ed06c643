"""The MOSS-TTS delay family: VoiceGenerator, TTS 8B, TTSD.

A Qwen3 decoder reads and predicts rows of one text id and n_vq codes, of which codebook k runs
k rows late. Specification: spec voicegen.md, sections 1 to 5.
"""
