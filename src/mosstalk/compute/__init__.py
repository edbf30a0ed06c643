"""Programs over a small op table, and the backends that run them."""
