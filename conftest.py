"""Doctests of modules that need Triton are collected only where it is installed."""

from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("triton") else ["src/fbeta/losses/fused/cuda.py", "src/fbeta/losses/fused/scalar.py"]
)
