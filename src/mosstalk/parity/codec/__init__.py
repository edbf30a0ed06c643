"""Whether the codec decodes a stream as it decodes a whole, and both as its specification says."""
