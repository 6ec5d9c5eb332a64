"""Attacks that look for what nobody thought of: `make attack`, or `PYTHONPATH=tests python -m attack --help`.

An attack is one file with two functions. `prepare()` makes what its tries start from, once: models, tables, a folder.
`attempt(made, luck, folder)` is one try in a process of its own: all that is random comes from `luck`, all that it
writes goes to the empty `folder`, which is kept if anything goes wrong. It returns a verdict in a few words; whatever
it raises, a signal, or a hang is a fault. What else a file may have: `WORKERS` at a time, `PATIENCE` in seconds,
`lacking()`, why it cannot be run here, and `said(made)`, what the summary says at the end.
"""
