"""Lightning: train any network for a metric, and tune the cut at the end of every validation."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

try:
    import torch
    import torch.distributed as dist
    from torch import Tensor, nn
    from torch.utils.data import DistributedSampler

    try:
        import lightning as L
    except ImportError:  # pragma: no cover
        import pytorch_lightning as L  # type: ignore[no-redef]  # the same classes under their older name
except ImportError as error:  # pragma: no cover
    raise ImportError("fbeta.lightning needs PyTorch and Lightning: pip install 'fbeta[lightning]'") from error

from fbeta import losses
from fbeta.decisions import tune
from fbeta.losses import Loss, TangentLoss
from fbeta.losses.counting import cells, hard_decisions
from fbeta.losses.kernels.plain import PlainRows
from fbeta.losses.running import RunningConfusion
from fbeta.losses.task import Batch
from fbeta.metrics import Confusion, Metric, as_metric
from fbeta.metrics.confusion import called

__all__ = ["MetricTask", "Prediction"]


class Prediction(NamedTuple):
    """What `MetricTask.predict_step` returns: logits, and the decisions ``score >= cut``.

    >>> Prediction(score=torch.tensor([2.0]), decision=torch.tensor([True])).decision
    tensor([True])
    """

    score: Tensor
    decision: Tensor


class MetricTask(L.LightningModule):
    r"""Train a network for a metric; at the end of each validation tune the cut exactly.

    .. math:: \hat c = \arg\max_c M(\text{counts of } z \ge c \text{ on all validation rows, of all ranks})

    Cuts are on logits, so 0 is probability ½; `score` is the logit (l₁ − l₀ for two softmax columns). `cut`
    starts at 0, is saved in checkpoints and decides in `predict_step`. The sanity check leaves it alone, and
    so does a label without positives, or without negatives, in validation.

    - `model`: any module that turns the inputs of a batch into logits.
    - `metric`: a Metric, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `loss`: a name that `fbeta.losses.get` reads, with its `options` (`prevalence`, `task`, `q` …), or a loss.
      Tell it `class_counts` if you can: on a small set counts of more than an epoch are stale.
      The task closes its steps, so with ``Trainer(accumulate_grad_batches=k)`` leave `accumulate` alone.
    - `optimizer`: makes what Lightning's `configure_optimizers` returns from parameters; AdamW if None.

    A batch is (inputs, target) or (inputs, target, weight). Logged: `train_loss`, `val_loss` (of all rows at
    once), and the metric, named after its spec: for F₂ `train_fbeta_2` (at ½, while the weights move),
    `val_fbeta_2` (at ½) and `val_fbeta_2_tuned`. The last is judged on the rows that chose the cut, so it
    is optimistic: compare models by `test_fbeta_2_tuned`, where `trainer.test` applies the cut to other rows.
    `MetricTask.load_from_checkpoint(path, model=net)` brings back weights, cut and the loss's counts.

    Shape: `cut` ``()``; ``(K,)`` for macro multi-label. Logits and targets as the loss's task says.

    >>> task = MetricTask(nn.Flatten(0), "fbeta:beta=2", prevalence=0.1)
    >>> task.cut.fill_(-1.5)
    tensor(-1.5000, dtype=torch.float64)
    >>> task.predict_step(torch.tensor([[-2.0], [-1.0]]))
    Prediction(score=tensor([-2., -1.]), decision=tensor([False,  True]))

    Reference: [lipton2014] (the cut), [narasimhan2015] (the tangent loss)
    """

    cut: Tensor

    def __init__(
        self,
        model: nn.Module,
        metric: Metric | str | Callable[[Any, Any, Any, Any], Any] | None = None,
        loss: Loss | str = "tangent",
        *,
        optimizer: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if metric is None and (isinstance(loss, str) or loss.metric is None):
            raise ValueError(
                "MetricTask needs a metric to tune the cut for, for example 'fbeta:beta=2' (a checkpoint holds no "
                "function of yours: load_from_checkpoint(path, model=…, metric=…) names it again)."
            )
        if options and not isinstance(loss, str):
            raise ValueError(
                f"{', '.join(options)} would shape a loss that MetricTask makes; got one that is made already. "
                "Give them to that loss, or give its name instead."
            )
        made = losses.get(loss, metric=metric, **options) if isinstance(loss, str) else loss
        _remember(self, metric, {**options, "loss": loss} if isinstance(loss, str) else {})
        if made.task == "multiclass":
            raise ValueError(
                "MetricTask tunes cuts, and classes are decided by the largest score; it does binary, softmax2 and "
                "multilabel."
            )
        if made.reduction == "none":
            raise ValueError("MetricTask needs a loss that is one number: reduction='mean' or 'sum'.")
        if isinstance(made, TangentLoss):
            made.watch = None  # it says to tune the cut, which is done here
        self.model, self.loss = model, made
        self.metric: Metric = made.target_metric if metric is None else as_metric(metric)
        #: What the metric is called in logs: letters, digits and underscores, as file names of checkpoints like it.
        self.metric_name = re.sub(r"\W+", "_", re.sub(r"\w+=", "", str(self.metric))).strip("_")
        self.optimizer = partial(torch.optim.AdamW, lr=1e-3) if optimizer is None else optimizer
        # `on_before_optimizer_step` closes a step, however many micro-batches it has.
        for counter in made.modules():
            if isinstance(counter, RunningConfusion):
                counter.accumulate = None
        width = (made.num_labels or 1,) if made.columns else ()
        self.register_buffer("cut", torch.zeros(width, dtype=torch.float64))
        # Not buffers: DDP would put rank 0's in place of every other rank's.
        self._counted: Tensor | None = None
        self._seen: list[Tensor] = []

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        exact = self.cut
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        # `.half()`, and Trainer(precision="bf16-true"), must not round the cut.
        if self.cut.dtype != exact.dtype:
            self.cut = exact.to(self.cut.device)
        return self

    def forward(self, inputs: Any) -> Tensor:
        """Logits of the network, as it gives them."""
        return self.model(inputs)  # type: ignore[no-any-return]

    def score(self, logits: Tensor) -> Tensor:
        """One logit per decision, in at least single precision."""
        z = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return z[:, 1] - z[:, 0] if self.loss.task == "softmax2" else z

    def decide(self, score: Tensor) -> Tensor:
        """Apply the cut: ``score >= cut`` is positive."""
        # In the cut's precision: rounded, a cut between two neighbouring scores would be one of them.
        found: Tensor = called(score.to(self.cut.dtype), self.cut)
        return found

    def configure_optimizers(self) -> Any:
        """Call the factory given as `optimizer`."""
        return self.optimizer(self.parameters())

    def training_step(self, batch: Any, batch_idx: int = 0) -> Tensor:
        """Give the loss of a batch, and count its decisions at ½."""
        inputs, target, weight = _parts(batch)
        logits = self(inputs)
        loss: Tensor = self.loss(logits, target, weight)
        rows = self.loss.reader.read(logits.detach(), target, weight)
        found = cells(rows, hard_decisions(rows.logits), columns=self.loss.columns).double()
        self._counted = found if self._counted is None else self._counted + found
        self.log("train_loss", loss.detach(), prog_bar=True, batch_size=len(target))
        return loss

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Close the step of a loss that counts steps."""
        step = getattr(self.loss, "step", None)
        if step is not None:
            step()

    def on_train_epoch_start(self) -> None:
        """Forget the counts of the epoch before."""
        self._counted = None

    def on_train_epoch_end(self) -> None:
        """Log the metric of the epoch's decisions."""
        if self._counted is None:
            return
        counts = self.trainer.strategy.reduce(self._counted, reduce_op="sum")
        self.log(f"train_{self.metric_name}", self.metric(Confusion(*counts)).mean().float(), sync_dist=True)

    def validation_step(self, batch: Any, batch_idx: int = 0) -> None:
        """Collect logits and targets."""
        inputs, target, weight = _parts(batch)
        self._seen.append(torch.stack(self.loss.reader.read(self(inputs), target, weight), dim=-1))

    def on_validation_epoch_end(self) -> None:
        """Gather the rows of all ranks, tune the cut, log loss and metric."""
        rows = self._gather(self.trainer.val_dataloaders)
        if self.trainer.sanity_checking or rows is None:
            return
        z, y, w = rows
        for k in range(z.shape[1]):
            kept = w[:, k] > 0
            column = [x[kept, k].cpu() for x in rows]
            # One class alone would send the cut to infinity, NaN and infinite scores nowhere: they leave it as it was.
            if 0 < column[1].sum() < len(column[1]) and column[0].isfinite().all():
                best = tune(column[0], column[1], self.metric, column[2], kind="logit").value
                self.cut.view(-1)[k] = best
        self._report("val", rows)
        loss, fitting = self.loss, self.trainer.state.fn == "fit"  # `trainer.validate` alone changes no loss
        if fitting and isinstance(loss, TangentLoss) and loss.counts == "given":
            loss.operate_at(_confusion(z >= 0, y, w, loss.columns))

    test_step = validation_step

    def on_test_epoch_end(self) -> None:
        """Judge the cut that validation chose on rows that had no say in it."""
        rows = self._gather(self.trainer.test_dataloaders)
        if rows is not None:
            self._report("test", rows)

    def predict_step(self, batch: Any, batch_idx: int = 0) -> Prediction:
        """Scores and decisions; a batch is inputs, or a tuple that begins with them."""
        score = self.score(self(batch[0] if isinstance(batch, tuple | list) else batch))
        return Prediction(score, self.decide(score))

    def _gather(self, loader: Any) -> Batch | None:
        """All rows that all ranks collected, one column per cut; None where there are none."""
        wide = self.loss.num_labels if self.loss.columns else 1
        if self._seen:
            mine = _without_repeats(torch.cat(self._seen), loader).reshape(-1, wide or 1, 3)
        else:
            exact = torch.promote_types(self.dtype, torch.float32)  # type: ignore[arg-type]
            mine = torch.zeros(0, wide or 1, 3, dtype=exact, device=self.device)
        self._seen = []
        if dist.is_available() and dist.is_initialized():
            parts: list[Any] = [None] * dist.get_world_size()
            dist.all_gather_object(parts, mine.cpu())  # ranks may hold unequally many rows
            mine = torch.cat(parts).to(mine.device)
        return Batch(*mine.unbind(-1)) if len(mine) else None

    def _report(self, stage: str, rows: Batch) -> None:
        """Log the loss of all rows at once, and the metric at ½ and at the cut."""
        z, y, w = rows
        name = f"{stage}_{self.metric_name}"
        found = {f"{stage}_loss": self.loss.loss_of(PlainRows(rows, self.loss.columns))}
        for key, decided in ((name, z >= 0), (f"{name}_tuned", self.decide(z))):
            score = self.metric(_confusion(decided, y, w, self.loss.columns)).mean()
            found[key] = torch.where(z.isnan().any(), torch.nan, score)
        # Every rank has the same rows and so the same numbers; their mean is for Lightning, which asks for it.
        self.log_dict({key: value.float() for key, value in found.items()}, sync_dist=True, prog_bar=True)


def _parts(batch: Any) -> tuple[Any, Tensor, Tensor | None]:
    """Inputs, target and weight of a batch."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise TypeError(
            "MetricTask wants batches (inputs, target) or (inputs, target, weight); got "
            f"{type(batch).__name__}. Override training_step and validation_step for others."
        )
    return batch[0], batch[1], batch[2] if len(batch) == 3 else None


def _confusion(decided: Tensor, target: Tensor, weight: Tensor, columns: bool) -> Confusion:
    c = Confusion.from_predictions(decided.double(), target.double(), weight.double(), axis=0)
    return c if columns else Confusion(*(cell.squeeze(0) for cell in c))


def _without_repeats(rows: Tensor, loader: Any) -> Tensor:
    """Cut off the rows that a DistributedSampler repeats to give every rank as many."""
    sampler = getattr(loader, "sampler", None)
    if isinstance(sampler, DistributedSampler) and not sampler.drop_last and len(rows) == sampler.num_samples:
        return rows[: len(range(sampler.rank, len(sampler.dataset), sampler.num_replicas))]  # type: ignore[arg-type]
    return rows


def _remember(task: MetricTask, metric: Any, options: dict[str, Any]) -> None:
    """Keep what is plain data as hyperparameters, so that a checkpoint needs only the network."""
    kept = {name: _plain(value) for name, value in options.items() if name != "process_group"}
    if metric is not None:
        given = as_metric(metric)
        try:
            if as_metric(str(given)) == given:
                kept["metric"] = str(given)
        except ValueError:
            pass  # a function of the user's own: `load_from_checkpoint(…, metric=…)` names it again
    task.save_hyperparameters(kept)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # a Counter is no plain data to `torch.load`
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value
