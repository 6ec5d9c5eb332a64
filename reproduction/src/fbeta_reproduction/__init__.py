"""The paper's evaluation, run again: what it says, what was trained, what came out, and which claims hold.

Lee, Yang and Yoo (2021), "A Surrogate Loss Function for Optimization of F_β Score in Binary Classification with
Imbalanced Data", https://arxiv.org/abs/2104.01459. In reading order, each importing only what stands above it:

- `records`: result and state files that survive a kill, and which process works on what;
- `protocol`: which runs there are, and the settings that they share;
- `naming`: names of runs and scores in tables, figures and sentences;
- `images`: the data sets, fetched and verified;
- `engine`: many residual networks trained side by side, with their kernels;
- `readings`: the loss of each run; other readings of the paper's text, and remedies for its plateau;
- `results`: the result files, as arrays;
- `runner`: trains the runs of a plan, stopped and resumed at will; measures gradients on the way;
- `verdicts`: the paper's claims, judged by rules in code;
- `figures`: the paper's figures, and ours;
- `write_up`: the report as Markdown and as a page;
- `commands`: `fbeta paper run`, `gradients`, `status` and `figures`.
"""
