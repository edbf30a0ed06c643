"""One module for each op: its shader in WGSL, and what a program dispatches for it.

Sums run in an order that is fixed by the row they belong to: a thread adds its share from the
first term to the last, then the threads' sums are added in the order of the threads. So a row has
the same bits in whatever company it is computed.
"""
