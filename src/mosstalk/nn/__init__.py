"""Pieces that several models share. They emit ops into a program; they compute nothing."""
