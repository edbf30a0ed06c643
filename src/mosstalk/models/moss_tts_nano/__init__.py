"""MOSS-TTS-Nano: global transformer over rows, local transformer over a frame's codes.

Specification: spec nano.md, sections 1 to 4.
"""
