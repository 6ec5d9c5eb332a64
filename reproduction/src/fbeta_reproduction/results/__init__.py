"""The result files: what is written after an epoch, read back as arrays, and what they say in numbers."""
