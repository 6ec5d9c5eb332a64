"""Trains the runs of a plan and writes their result files; stopped at any time, it goes on from there."""
