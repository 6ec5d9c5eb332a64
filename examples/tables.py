"""Several classes and several labels in tables: macro F₁ of a plain classifier and of fbeta's estimators.

Classes: scikit-learn's digits with a long tail, 0 ten times as often as 9. Labels: of the same digits, whether one is
even, has a closed loop, or is a 7 (rare). Several splits, because one says little: the rarest class has a few rows.

Run: python examples/tables.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fbeta.sklearn import MetricClassifier, TangentMetaClassifier, ThresholdClassifier, metric_score

METRIC = "fbeta:beta=1"


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1))


def long_tail(seed: int) -> tuple[Any, Any]:
    """Digits as words, each class kept by a share that falls from 1 to 1/10."""
    X, digit = load_digits(return_X_y=True)
    keep = np.random.default_rng(seed).random(len(digit)) < 10.0 ** (-digit / 9)
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    return X[keep], names[digit[keep]]


def labels(_: int) -> tuple[Any, Any]:
    """Three questions about a digit that may all be answered yes."""
    X, digit = load_digits(return_X_y=True)
    return X, np.column_stack([digit % 2 == 0, np.isin(digit, [0, 6, 8, 9]), digit == 7]).astype(int)


def estimators(several_labels: bool) -> dict[str, Any]:
    plain = MultiOutputClassifier(logistic()) if several_labels else logistic()
    return {
        "logistic regression": plain,
        "… decided for macro F₁": ThresholdClassifier(logistic(), METRIC, average="macro"),
        "… trained at macro F₁'s costs": TangentMetaClassifier(logistic(), METRIC, average="macro"),
        "a network for macro F₁": MetricClassifier(METRIC, "mlp", average="macro", max_epochs=30),
    }


def compare(table: Callable[[int], tuple[Any, Any]], splits: int) -> dict[str, list[float]]:
    """Macro F₁ on the half of the rows that nobody saw, in each of some splits."""
    found: dict[str, list[float]] = {}
    for seed in range(splits):
        X, y = table(seed)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
        for name, estimator in estimators(y.ndim == 2).items():
            called = estimator.fit(X, y).predict(X_test)
            score = metric_score(y_test, called, metric=METRIC, average="macro")
            found.setdefault(name, []).append(score)
    return found


def main(splits: int = 4) -> dict[str, dict[str, list[float]]]:
    found = {}
    for title, table in (("Ten classes with a long tail", long_tail), ("Three labels", labels)):
        found[title] = compare(table, splits)
        print(f"{title}: macro F₁, mean and range of {splits} splits")
        for name, scores in found[title].items():
            print(f"  {name:32} {np.mean(scores):.3f}  [{min(scores):.3f}, {max(scores):.3f}]")
    return found


if __name__ == "__main__":
    main()
