"""Doctests of modules that need Triton are collected only where it is installed."""

from importlib.util import find_spec

NEED_TRITON = [
    "src/fbeta/losses/kernels/cuda.py",
    "src/fbeta/losses/kernels/cuda_formula.py",
    "src/fbeta/losses/kernels/cuda_kernels.py",
    "src/fbeta/train/kernels/cuda.py",
    "src/fbeta/train/kernels/cuda_conv.py",
]
collect_ignore = [] if find_spec("triton") else NEED_TRITON
