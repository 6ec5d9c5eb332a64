"""Linear models."""

from dataclasses import dataclass

from fbeta.learners.network import NetworkLearner


@dataclass(frozen=True)
class Linear(NetworkLearner):
    """A linear model, by L-BFGS on all rows until it converges: with cross entropy it is logistic regression."""

    name, package, rank = "linear", "torch", 0

    solver: str = "lbfgs"
    epochs: int = 100
    patience: int | None = None
