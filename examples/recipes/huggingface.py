"""Hugging Face's Trainer: `compute_loss`, or `compute_loss_func` where micro-batches are accumulated.

One message in ten is spam, and a few words decide. The network is a DistilBERT of 9,000 weights, fresh and
small enough for a CPU; nothing is downloaded. A classification head gives two columns, hence task="softmax2".

Run: python examples/recipes/huggingface.py
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    EvalPrediction,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from fbeta import Confusion, FBeta, TangentLoss

Rows = list[dict[str, list[int] | int]]
EVERYDAY = "the a you we i is are was to for at on in lunch meeting report thanks please call home late"
SALES = "free offer win prize cash click now urgent limited deal"
VOCABULARY = {word: i for i, word in enumerate(f"[PAD] {EVERYDAY} {SALES}".split())}


def load(n: int = 1200) -> tuple[Rows, Rows]:
    """Messages of twelve words; spam has more of the words of sales, but friends use them too."""
    chance = random.Random(0)
    rows: Rows = []
    for _ in range(n):
        spam = chance.random() < 0.1
        sales = 0.4 if spam else 0.1
        words = [chance.choice((SALES if chance.random() < sales else EVERYDAY).split()) for _ in range(12)]
        rows.append({"input_ids": [VOCABULARY[word] for word in words], "labels": int(spam)})
    return rows[: n // 2], rows[n // 2 :]


def network() -> DistilBertForSequenceClassification:
    """A small fresh DistilBERT."""
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=len(VOCABULARY),
        max_position_embeddings=12,
        dim=32,
        hidden_dim=32,
        n_layers=1,
        n_heads=2,
        dropout=0.0,
        attention_dropout=0.0,
        seq_classif_dropout=0.0,
    )
    return DistilBertForSequenceClassification(config)


def f2(outputs: EvalPrediction) -> dict[str, float]:
    """F₂ of the decisions at ½: the larger of two columns."""
    logits = np.asarray(outputs.predictions)
    c = Confusion.from_scores(logits[:, 1] - logits[:, 0], outputs.label_ids, cut=0.0)
    return {"f2": float(FBeta(2)(c))}


def settings(folder: str, batch: int = 32, **more: Any) -> TrainingArguments:
    """What all variants share."""
    return TrainingArguments(
        folder,
        num_train_epochs=8,
        per_device_train_batch_size=batch // more.get("gradient_accumulation_steps", 1),
        per_device_eval_batch_size=300,
        learning_rate=3e-3,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **more,
    )


def without(train: Rows, test: Rows, folder: str) -> Trainer:
    trainer = Trainer(network(), settings(folder), train_dataset=train, eval_dataset=test, compute_metrics=f2)
    trainer.train()
    return trainer


class FBetaTrainer(Trainer):
    """A Trainer with a loss of its own, as many scripts have one."""

    loss: TangentLoss
    loss_is_scaled_for_ga = False  # a mean: the Trainer divides it by the number of micro-batches

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Take the labels away, so that the network computes no loss, and compute ours."""
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = self.loss(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss


def with_fbeta(train: Rows, test: Rows, folder: str) -> FBetaTrainer:
    trainer = FBetaTrainer(network(), settings(folder), train_dataset=train, eval_dataset=test, compute_metrics=f2)
    counts = Counter(row["labels"] for row in train)
    trainer.loss = TangentLoss(FBeta(2), class_counts=counts, task="softmax2").to(trainer.args.device)
    trainer.train()
    return trainer


class Announce(TrainerCallback):
    """Tell the loss where an optimiser step ends; the last of an epoch may have fewer micro-batches."""

    def __init__(self, loss: TangentLoss) -> None:
        self.loss = loss

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the step."""
        self.loss.step()


def with_loss_func(train: Rows, test: Rows, folder: str, parts: int = 4) -> Trainer:
    args = settings(folder, gradient_accumulation_steps=parts)
    counts = Counter(row["labels"] for row in train)
    loss = TangentLoss(FBeta(2), class_counts=counts, task="softmax2", reduction="none", accumulate=None)
    loss.to(args.device)

    def mean_over_step(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        elements: Tensor = loss(outputs["logits"], labels)
        return elements.sum() / (len(labels) if num_items_in_batch is None else num_items_in_batch)

    trainer = Trainer(
        network(),
        args,
        train_dataset=train,
        eval_dataset=test,
        compute_metrics=f2,
        compute_loss_func=mean_over_step,
        callbacks=[Announce(loss)],
    )
    trainer.train()
    return trainer


def main() -> dict[str, float]:
    train, test = load()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, recipe in (
            ("cross entropy", without),
            ("compute_loss, TangentLoss(FBeta(2))", with_fbeta),
            ("compute_loss_func, 4 micro-batches", with_loss_func),
        ):
            found[name] = recipe(train, test, folder).evaluate()["eval_f2"]
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, value in main().items():
        print(f"{name:<36} F2 at ½ on test rows: {value:.3f}")
