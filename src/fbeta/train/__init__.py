"""Training many models at once, and the books that are kept about it."""
