"""Attacks that look for what nobody thought of: each has a seed, and a number of tries or of seconds."""
