"""Results of many runs in one folder: records, checkpoints, and which process trains which run."""
