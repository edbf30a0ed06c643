"""What checks need of a language model, whatever its family: one module speaks for each."""
