"""Train networks for a metric: all folds in step, stopped where the held-out rows score best."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fbeta.decisions import Platt
from fbeta.decisions.steps import count_columns
from fbeta.learners.crossfit import Array
from fbeta.learners.fixed_point import without_costs
from fbeta.learners.learner import Best, Course, Fitted, Goal, Rows, Tick
from fbeta.learners.machine import device_of, threads_for, torch_threads
from fbeta.learners.network import Network, NetworkLearner
from fbeta.learners.solvers import LBFGS, Adam
from fbeta.learners.stack import Run, Stack
from fbeta.losses import TangentLoss
from fbeta.metrics import Confusion

#: What random numbers are for: the first words of their keys.
START, ORDER = 10, 11


def train(
    learner: NetworkLearner, rows: Rows, goal: Goal, losses: Sequence[str], seed: int, tick: Tick
) -> dict[str, Fitted]:
    """Train every loss on all rows and on all but each fold; what came of each, by name."""
    began = time.perf_counter()
    # With L-BFGS runs share a line search, so each loss is a program of its own.
    groups = [losses] if learner.solver == "adam" else [[loss] for loss in losses]
    programs = [_program(learner, group, rows, goal, seed) for group in groups]
    methods = [method for _, group in programs for method in group]
    numbers = len(methods) * (rows.folds + 1) * learner.batch_of(len(rows.y)) * rows.X.shape[1]
    with torch_threads(threads_for(numbers)):
        for epoch in range(1, learner.epochs + 1):
            for solver, group in programs:
                if all(method.ended(epoch) for method in group):
                    continue
                moving = solver.epoch()
                for method in group:
                    method.look(epoch, solver.models)
                if not moving and all(method.settled for method in group):
                    for method in group:
                        method.stopped = True
            tick(epoch)
            if all(method.ended(epoch + 1) for method in methods):
                break
    share = (time.perf_counter() - began) / len(methods)
    return {method.loss: method.fitted(share) for method in methods}


def _program(
    learner: NetworkLearner, losses: Sequence[str], rows: Rows, goal: Goal, seed: int
) -> tuple[Adam | LBFGS, list["_LossRuns"]]:
    """How the stack of some losses is trained, and the runs of each."""
    learning = [np.repeat(part, rows.times(part)) for part in rows.parts]
    count = len(learning[0])
    runs = [
        Run(part, loss, (START, seed), (ORDER, seed, i), learner.loss_options(loss, goal))
        for loss in losses
        for i, part in enumerate(learning)
    ]
    adam = learner.solver == "adam"  # full batches are few, and a line search needs the digits
    mass = count if rows.weight is None else float(rows.weight[learning[0]].sum())
    stack = Stack(
        rows.X,
        rows.y,
        runs,
        goal.metric,
        hidden=learner.hidden,
        weight=rows.weight,
        pooled=goal.average == "micro",
        penalty=1 / mass if learner.alpha is None else learner.alpha,
        device=device_of(learner.device),
        dtype=torch.float32 if adam else torch.float64,
    )
    group = [_LossRuns(loss, stack, i * len(learning), rows, goal, learner.patience) for i, loss in enumerate(losses)]
    if not adam:
        return LBFGS(stack), group
    batch = learner.batch_of(count)
    steps = max(1, count // batch)
    solver = Adam(stack, batch=batch, steps=steps, rate=learner.rate_of(steps), averaged=learner.averaged)
    return solver, group


class _LossRuns:
    """The runs of one loss in a stack, of all rows and then of each fold; its course, and its best scores so far."""

    def __init__(self, loss: str, stack: Stack, first: int, rows: Rows, goal: Goal, patience: int | None) -> None:
        self.loss, self.stack, self.rows, self.goal, self.best = loss, stack, rows, goal, Best(patience)
        self.runs = range(first, first + rows.folds + 1)
        self.judge = stack.loss_of_one(first).eval()
        self.modules = list({id(loss): loss for loss in map(stack.loss_of, self.runs)}.values())
        # Of each epoch: share called positive, loss, score at ½, score of held-out rows.
        self.course: list[tuple[float, float, float, float]] = []
        self.scores: Array = np.full(rows.y.shape, np.nan)
        self.networks: list[Network] = []
        self.calibration: tuple[Platt, ...] | None = None
        self.point: Confusion | None = None
        self.settled, self.stopped = True, False

    def ended(self, epoch: int) -> bool:
        """Whether it is finished by this epoch, whatever is trained beside it."""
        return self.stopped or self.best.ended(epoch)

    def look(self, epoch: int, models: Sequence[torch.Tensor]) -> None:
        """Look at the scores of an epoch, and hand a tangent loss its operating point."""
        rows, scores = self.rows, np.full(self.rows.y.shape, np.nan)
        for f in range(rows.folds):
            mine = np.flatnonzero(rows.fold == f)
            scores[mine] = self.stack.scores(self.runs[1 + f], mine, models).double().cpu().numpy()
        held, calibration = self.goal.held_out_score(*rows.held_out(scores)), self._closed_form()
        self.course.append((*self._on_learning_rows(models), held))
        # Of equal scores the better probabilities win: a metric of few positives has many ties.
        key = (round(held, 9), -self._log_loss(scores, calibration))
        if not self.stopped and self.best.see(epoch, key):
            self.scores, self.calibration = scores, calibration
            self.networks = [self.stack.network(run, models) for run in self.runs]
        self.settled = self._operate(scores)

    @torch.no_grad()
    def _on_learning_rows(self, models: Sequence[torch.Tensor]) -> tuple[float, float, float]:
        """Share called positive, loss, and score at ½, of the model of all rows on the rows it learned from."""
        z = self.stack.scores(self.runs[0], None, models)
        given = () if self.stack.weight is None else (self.stack.weight[:, None].expand_as(z),)
        value = float(self.judge(z, self.stack.y, *given))
        called = (z >= 0).cpu().numpy()
        counts = count_columns(called, self.rows.y, self.rows.weight)
        return float(called.mean()), value, float(np.mean(self.goal.metric(counts)))

    def _tangent(self) -> TangentLoss | None:
        """Its loss, if that is handed its operating point."""
        loss = self.modules[0]
        return loss if isinstance(loss, TangentLoss) and loss.counts == "given" else None

    def _operate(self, scores: Array) -> bool:
        """Hand the operating point of the held-out rows to a tangent loss, damped; whether it hardly moved."""
        tangent = self._tangent()
        z, y, w = self.rows.held_out(scores)
        if tangent is None or not np.isfinite(z).all():
            return True
        found = count_columns(z >= 0, y, w).shares()
        if self.point is not None:
            found = Confusion(*((a + b) / 2 for a, b in zip(self.point, found, strict=True)))
        self.point, before = found, tangent.delta
        for loss in (*self.modules, self.judge):
            assert isinstance(loss, TangentLoss)
            if self.goal.average == "micro":
                loss.operate_at(Confusion(*(float(np.sum(x)) for x in found)))
            else:
                loss.operate_at(Confusion(*(np.tile(x, (loss.num_labels or 1) // y.shape[1]) for x in found)))
        moved = torch.logit(tangent.delta) - torch.logit(before)
        return bool(moved.abs().max() < 0.05)

    def _closed_form(self) -> tuple[Platt, ...] | None:
        """What makes log odds of logits, one per output, where the loss implies it."""
        outputs = int(self.rows.y.shape[1])
        if self.loss == "bce":
            return (Platt(1.0, 0.0),) * outputs
        loss = self.modules[0]
        if not isinstance(loss, TangentLoss) or loss.q >= 1:
            return None
        # The run of all rows comes first; pooled outputs have one pair of costs for all.
        pairs = torch.stack([c.double().reshape(-1) for c in loss.costs], 1).tolist()
        return tuple(without_costs(pairs[k % len(pairs)], loss.q) for k in range(outputs))

    def _log_loss(self, scores: Array, calibration: tuple[Platt, ...] | None) -> float:
        """Mean log loss of the held-out rows; 0 where the loss gives no probabilities."""
        if calibration is None:
            return 0.0
        z, y, w = self.rows.held_out(scores)
        log_odds = np.array([c.slope for c in calibration]) * z + [c.offset for c in calibration]
        loss = np.logaddexp(0, log_odds) - y * log_odds
        return float(np.average(loss.mean(1), weights=w))

    def fitted(self, seconds: float) -> Fitted:
        """What came of it, at its best epoch."""
        share, loss, score, held = zip(*self.course, strict=True)
        how: dict[str, Any] = {"rounds": self.best.epoch, "course": Course(loss, score, held), "seconds": seconds}
        if not np.isfinite(self.best.key[0]):
            remark = "diverged: its scores are not finite"
            return Fitted(np.zeros_like(self.scores), None, remark=remark, **how)
        whole, *of_folds = self.networks
        remark = collapse(share, self.best.epoch)
        return Fitted(self.scores, whole, tuple(of_folds), self.calibration, remark=remark, **how)


def collapse(shares: Sequence[float], taken: int) -> str:
    """Whether a model gave up, from the share it calls positive in each epoch; `taken` is the epoch that is used."""
    for extreme, word in ((1.0, "everything"), (0.0, "nothing")):
        sound = [epoch for epoch, share in enumerate(shares, start=1) if share != extreme]
        since = max(sound, default=0) + 1
        if len(shares) - since + 1 >= min(2, max(1, len(shares))):
            before = f", but the model is that of epoch {taken}" if 0 < taken < since else ""
            return f"predicts {word} positive since epoch {since}{before}"
    return ""
