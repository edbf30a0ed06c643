"""Whether the delay family's prompts, backbone, heads and rows are those of the original.

What the original gave lies in a folder of JSON files (`files.py`). What its specification says of
rows is checked without a model.
"""
