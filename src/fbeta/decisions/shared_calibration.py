"""Calibrations of several columns together: lines that are drawn to each other."""

from collections.abc import Iterable, Sequence

import numpy as np

from fbeta.decisions.calibration import Calibrator, LabelledRows, Platt, most_likely, sigmoid
from fbeta.decisions.calibration_choice import BENT, calibrate
from fbeta.decisions.inputs import Vector
from fbeta.decisions.steps import Steps

#: A line goes by so many parts of the rows.
PARTS = 256
#: The common line and the spread around it are found when they move less, or after so many rounds.
MOVED, ROUNDS = 1e-3, 50


def calibrate_together(columns: Iterable[Steps]) -> list[Calibrator]:
    r"""Calibrations of columns whose scores mean alike: a column with few rows of a class is drawn to the others.

    .. math:: \operatorname{logit} p_k = a_k x + b_k, \qquad (a_k, b_k) \sim N(\mu, \Sigma)

    μ and Σ are learned from all columns, by EM with normal approximations. A column that has rows enough to ask for a
    form of its own gets that, see `calibrate`.

    >>> few = Steps.of([2.0, 1.0, 0.0, -1.0], [1, 0, 0, 0], kind="logit")
    >>> many = Steps.of([2.0, 1.0, 0.0, -1.0] * 99, [1, 1, 0, 0] * 90 + [0, 0, 1, 1] * 9, kind="logit")
    >>> [curve.log_odds([0.0, 2.0]).round(1).tolist() for curve in calibrate_together([few, many])[:1]]
    [[-1.1, 3.1]]
    """
    curves, rows = [], []
    for steps in columns:
        curves.append(calibrate(steps))
        rows.append(LabelledRows.of(steps, PARTS))
    if len(rows) < 2:
        return curves
    each = zip(rows, fit_lines(rows), curves, strict=True)
    return [line if r.rarer < BENT else curve for r, line, curve in each]


def fit_lines(rows: Sequence[LabelledRows]) -> list[Platt]:
    """A line for each column, drawn to the common one."""
    mass = np.concatenate([r.hit + r.miss for r in rows])
    x = np.concatenate([r.x for r in rows])
    centre = float(np.average(x, weights=mass))
    spread = float(np.sqrt(np.average((x - centre) ** 2, weights=mass))) or 1.0
    designs = [np.stack([(r.x - centre) / spread, np.ones_like(r.x)]) for r in rows]
    mean, covariance = np.array([1.0, 0.0]), np.eye(2)
    for _ in range(ROUNDS):
        precision = np.linalg.inv(covariance).astype(np.float64)
        lines = np.array([most_likely(r, d, (mean, precision)) for r, d in zip(rows, designs, strict=True)])
        each = zip(rows, designs, lines, strict=True)
        unsure = np.mean([np.linalg.inv(_information(*line) + precision) for line in each], axis=0)
        before, mean = np.vstack([mean, covariance]), lines.mean(axis=0)
        covariance = (lines - mean).T @ (lines - mean) / len(rows) + unsure
        if np.abs(np.vstack([mean, covariance]) - before).max() < MOVED:
            break
    of_logits = rows[0].kind == "probability"
    slopes = np.maximum(lines[:, 0], 0.0) / spread
    offsets = lines[:, 1] - slopes * centre
    return [Platt(float(a), float(b), of_logits=of_logits) for a, b in zip(slopes, offsets, strict=True)]


def _information(rows: LabelledRows, design: Vector, at: Vector) -> Vector:
    """How much the rows say of a line: the curvature of their log loss."""
    p = sigmoid(at @ design)
    found: Vector = (design * ((rows.hit + rows.miss) * p * (1 - p))) @ design.T
    return found
