"""Train table models for a metric: all folds at once, stopped where the out-of-fold rows score best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fbeta import losses
from fbeta.decisions import tune
from fbeta.learners.tables import FROM_PRIOR
from fbeta.losses import Loss, TangentLoss, tangent_loss
from fbeta.metrics import Confusion
from fbeta.sklearn.labels import Array
from fbeta.sklearn.networks import Network
from fbeta.sklearn.recipe import Recipe, Trained
from fbeta.sklearn.stack import Stack

#: q, c₀ and c₁ of a tangent loss, one of each a column.
Prices = tuple[float, Tensor, Tensor]
#: Rows that are scored at once.
CHUNK = 1 << 16
#: Steps of L-BFGS between two looks at the out-of-fold rows.
STEPS = 10


class Training:
    """One run: a model of all rows and one a fold, in step."""

    def __init__(self, X: Any, target: Array, weight: Array, fold: NDArray[np.int64], recipe: Recipe) -> None:
        self.X, self.target, self.weight, self.fold, self.recipe = X, target, weight, fold, recipe
        # Full batches are few and a line search needs the digits.
        self.dtype = torch.float64 if recipe.solver == "lbfgs" else torch.float32
        self.generator = torch.Generator().manual_seed(recipe.seed)
        folds = int(fold.max()) + 1
        self.held = fold >= 0
        # Column 0 trains on everything; column f + 1 on all rows but those of fold f.
        self.mask = np.concatenate([np.ones((len(fold), 1)), fold[:, None] != np.arange(folds)], axis=1)
        sizes = [X.shape[1], *recipe.hidden, target.shape[1]]
        self.stack = Stack(folds + 1, sizes, self.generator).to(recipe.device, self.dtype)
        # Positives and negatives of each model's rows: (models, labels).
        hit = (self.mask * weight[:, None]).T @ target
        miss = (self.mask * weight[:, None]).T @ (1 - target)
        self.losses = self._losses(miss, hit)
        if recipe.loss in FROM_PRIOR:
            with torch.no_grad():
                self.stack.biases[-1][:, 0] = torch.as_tensor(np.log(hit / miss), dtype=self.dtype)
        alpha = 1 / weight.sum() if recipe.alpha is None else recipe.alpha
        # Relative to the rows of the final model, whose share in the mean over all models this is.
        self.alpha = float(alpha * weight.sum() / (self.mask * weight[:, None]).sum() / target.shape[1])
        self.point: Confusion | None = None
        self.labels = self._tensor(target)
        self.shares = self._tensor(weight[:, None] * self.mask)
        self._price()
        self.rows = self._tensor(X) if recipe.solver == "lbfgs" else None
        self.optimiser = self._optimiser()

    def _optimiser(self) -> torch.optim.Optimizer:
        if self.recipe.solver == "lbfgs":
            return torch.optim.LBFGS(
                self.stack.parameters(),
                max_iter=STEPS,
                tolerance_grad=1e-7,
                tolerance_change=1e-10,
                line_search_fn="strong_wolfe",
            )
        return torch.optim.Adam(self.stack.parameters(), lr=self.recipe.learning_rate)

    def run(self) -> Trained:
        """Train until the metric of the out-of-fold rows stops rising; give the models of the best epoch."""
        best, stale, history = None, 0, []
        for epoch in range(1, self.recipe.max_epochs + 1):
            before = [p.detach().clone() for p in self.stack.parameters()]
            self._advance()
            scores = self._out_of_fold()
            closed = self._closed_form()
            history.append(self._value(scores))
            # Of equal scores the better probabilities win: a metric of few positives has many ties.
            key = (round(history[-1], 9), -_log_loss(scores, self, closed))
            if best is None or key > best[0] or self.recipe.patience is None:
                best, stale = (key, self._snapshot(), scores, closed, epoch), 0
            else:
                stale += 1
            if self.recipe.patience is not None and stale >= self.recipe.patience:
                break
            still = self._operate(scores) and self._at_rest(before)
            if still and self.recipe.solver == "lbfgs":
                break
        assert best is not None
        _, networks, scores, closed, epoch = best
        slope, offset = closed if closed is not None else (None, None)
        return Trained(networks[0], networks[1:], scores, slope, offset, epoch, history)

    def _advance(self) -> None:
        """One epoch of batches, or a few steps on all rows."""
        self.stack.train()
        if self.rows is not None:
            self.optimiser.step(self._closure)
            return
        for number in self._batches():
            self.optimiser.zero_grad()
            torch.autograd.backward(self._objective(self._tensor(self.X[number]), torch.as_tensor(number)))
            self.optimiser.step()

    def _closure(self) -> float:
        assert self.rows is not None
        self.optimiser.zero_grad()
        value = self._objective(self.rows, slice(None))
        torch.autograd.backward(value)
        return float(value.detach())

    def _batches(self) -> Iterator[NDArray[np.int64]]:
        n = len(self.fold)
        size = self.recipe.batch_size or int(np.clip(n // 10, 32, 1024))
        order = torch.randperm(n, generator=self.generator).numpy()
        for start in range(0, n, size):
            yield order[start : start + size]

    @torch.no_grad()
    def _out_of_fold(self) -> Array:
        """Logits of every row by the model that never saw it; NaN for rows that all saw."""
        self.stack.eval()
        parts = []
        for start in range(0, len(self.fold), CHUNK):
            rows = self.rows if self.rows is not None and len(self.fold) <= CHUNK else None
            z = self.stack(self._tensor(self.X[start : start + CHUNK]) if rows is None else rows)
            mine = torch.as_tensor(self.fold[start : start + CHUNK] + 1).clamp(min=1).to(z.device)
            parts.append(z[torch.arange(len(z), device=z.device), mine].double().cpu().numpy())
        scores: Array = np.concatenate(parts)
        scores[~self.held] = np.nan
        return scores

    def _value(self, scores: Array) -> float:
        """The metric of the out-of-fold rows: at the model's own boundary, or at the best cut there is."""
        z, y, w = scores[self.held], self.target[self.held], self.weight[self.held]
        if not np.isfinite(z).all():
            return -np.inf
        if self.recipe.average == "micro":
            z, y, w = z.reshape(-1, 1), y.reshape(-1, 1), np.repeat(w, y.shape[1])
        if self.recipe.own_cut:
            wide = np.broadcast_to(w[:, None], y.shape)
            counts = Confusion.from_predictions((z >= 0) * 1.0, y, wide, axis=0)
            return float(np.mean(self.recipe.metric(counts)))
        return float(
            np.mean([tune(z[:, k], y[:, k], self.recipe.metric, w).score for k in range(z.shape[1])])
        )

    def _operate(self, scores: Array) -> bool:
        """Hand the out-of-fold operating point to a tangent loss, damped; True if it hardly moved."""
        given = [loss for loss, _ in self.losses if isinstance(loss, TangentLoss) and loss.counts == "given"]
        if not given or not np.isfinite(scores[self.held]).all():
            return True
        wide = np.broadcast_to(self.weight[self.held][:, None], scores[self.held].shape)
        found = Confusion.from_predictions(
            (scores[self.held] >= 0) * 1.0, self.target[self.held], wide, axis=0
        ).shares()
        if self.point is not None:
            found = Confusion(*((a + b) / 2 for a, b in zip(self.point, found, strict=True)))
        self.point = found
        before = given[0].delta
        for loss, part in self.losses:
            assert isinstance(loss, TangentLoss)
            if self.recipe.average == "micro":
                loss.operate_at(Confusion(*(float(np.sum(x)) for x in found)))
            else:
                models = (part.stop - part.start) // len(found.tp)
                loss.operate_at(Confusion(*(np.tile(x, models) for x in found)))
        self._price()
        moved = torch.logit(given[0].delta) - torch.logit(before)
        return bool(moved.abs().max() < 0.05)

    def _at_rest(self, before: list[Tensor]) -> bool:
        after = list(self.stack.parameters())
        return all(bool((a - b).abs().max() < 1e-3) for a, b in zip(after, before, strict=True))

    def _closed_form(self) -> tuple[float, Array] | None:
        """Slope and offset (one a label) that make log odds of logits, where the loss knows them."""
        loss, part = self.losses[0]
        if isinstance(loss, TangentLoss) and loss.q < 1:
            c0, c1 = (c.double().cpu().numpy() for c in loss.costs)
            labels = self.target.shape[1]
            # Of the final model; micro averages have one pair for all labels.
            return 1 - loss.q, np.broadcast_to(np.log(c0 / c1), part.stop - part.start)[:labels].copy()
        if loss.name == "bce":
            return 1.0, np.zeros(self.target.shape[1])
        return None

    def _snapshot(self) -> list[Network]:
        return [self.stack.network(m) for m in range(self.stack.models)]

    def _losses(self, miss: Array, hit: Array) -> list[tuple[Loss, slice]]:
        """The loss over all models' columns, or for micro averages one a model: they pool their columns."""
        models, labels = hit.shape
        options = dict(self.recipe.loss_options)
        if self.recipe.loss == "tangent":
            options.setdefault("counts", "given")  # the point comes from out-of-fold rows: see `_operate`
        if self.recipe.prevalence is not None:
            options["prevalence"] = self.recipe.prevalence
        micro = self.recipe.average == "micro"
        parts = [(m, 1) for m in range(models)] if micro else [(0, models)]
        found = []
        for start, many in parts:
            chosen = slice(start * labels, (start + many) * labels)
            try:
                loss = losses.get(
                    self.recipe.loss,
                    metric=self.recipe.metric,
                    task="multilabel",
                    num_labels=many * labels,
                    average="micro" if micro else "macro",
                    class_counts=(miss.ravel()[chosen], hit.ravel()[chosen]),
                    check=False,
                    sync=False,
                    **options,
                )
            except TypeError as error:  # an option the loss does not have, or one that is given here already
                raise TypeError(
                    f"loss_options {self.recipe.loss_options} do not fit the loss {self.recipe.loss!r}: {error}."
                ) from None
            found.append((loss.to(self.recipe.device), chosen))
        return found

    def _tensor(self, x: Any) -> Tensor:
        if hasattr(x, "tocoo"):
            c = x.tocoo()
            index = torch.as_tensor(np.stack([c.row, c.col]), dtype=torch.int64)
            found = torch.sparse_coo_tensor(
                index, torch.as_tensor(c.data, dtype=self.dtype), c.shape, check_invariants=False
            )
            return found.coalesce().to(self.recipe.device)
        return torch.as_tensor(np.ascontiguousarray(x), dtype=self.dtype, device=self.recipe.device)

    def _objective(self, rows: Tensor, number: Tensor | slice) -> Tensor:
        """Loss of a batch over all models, and the penalty."""
        z = self.stack(rows)
        flat = (z.shape[0], -1)
        target = self.labels[number][:, None, :].expand_as(z).reshape(flat)
        weight = self.shares[number][:, :, None].expand_as(z).reshape(flat)
        logits = z.reshape(flat)
        total: Tensor = self.alpha * self.scale * self.stack.penalty()
        for (loss, part), costs in zip(self.losses, self.costs, strict=True):
            batch = logits[:, part], target[:, part], weight[:, part]
            value = loss(*batch) if costs is None else self._priced(*batch, costs)
            total = total + value.to(self.dtype) / len(self.losses)
        return total

    def _priced(self, z: Tensor, y: Tensor, w: Tensor, costs: Prices) -> Tensor:
        """The tangent loss at costs that stay for an epoch: its function, without what the module remembers."""
        q, c0, c1 = costs
        share = w.sum()
        return (w * tangent_loss(z, y, (c0, c1), q)).sum() / (share + (share == 0))

    def _price(self) -> None:
        """Read the costs for the next epoch.

        A penalty should weigh against costs as against plain cross entropy: it is scaled by the mean cost of a row.
        """
        self.costs: list[Prices | None] = []
        self.scale = 1.0
        for loss, _ in self.losses:
            if not isinstance(loss, TangentLoss) or loss.counts != "given":
                self.costs.append(None)
                continue
            c0, c1 = loss.costs
            self.costs.append((loss.q, c0.to(self.dtype), c1.to(self.dtype)))
            rate = float(np.average(self.target.mean(1), weights=self.weight))
            self.scale = float(c0.mean()) * (1 - rate) + float(c1.mean()) * rate


def _log_loss(scores: Array, training: Training, closed: tuple[float, Array] | None) -> float:
    """Mean log loss of the out-of-fold rows; 0 where the loss gives no probabilities."""
    if closed is None:
        return 0.0
    held = training.held
    z = closed[0] * scores[held] + closed[1]
    y = training.target[held]
    loss = np.logaddexp(0, z) - y * z
    return float(np.average(loss.mean(1), weights=training.weight[held]))
