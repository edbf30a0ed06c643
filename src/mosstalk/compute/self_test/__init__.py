"""Whether a device computes what the op table says, found out before it is trusted."""
