"""What a storage type costs: drift from f32 in hidden vectors, logits, codes and samples."""
