"""The books that are kept about many runs: who trains what, what came out, and where to go on from."""
