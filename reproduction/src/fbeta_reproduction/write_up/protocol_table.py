"""The protocol in words: what the paper says, and what was done."""

from __future__ import annotations

from fbeta.numerals import series
from fbeta_reproduction.naming import beta_name, dataset_name
from fbeta_reproduction.protocol import BETAS, LOSSES, PAPER, SETTINGS, Run

_STEM = {"imagenet": "torchvision’s stem (7×7, stride 2, max-pool)", "cifar": "a 3×3 stem"}


def protocol_table() -> tuple[tuple[str, str, str], ...]:
    """Each part of the protocol, in the paper and here.

    >>> [row for row in protocol_table() if row[0] == "learning rate"]
    [('learning rate', '0.01; schedule not named', '0.01, constant')]
    """
    run = Run(PAPER[0], LOSSES[0], 1.0)
    networks = [f"{SETTINGS[d].network.replace('resnet', 'ResNet-')} on {dataset_name(d)}" for d in PAPER]
    return (
        (
            "networks",
            "ResNet-18 on Fashion-MNIST, ResNet-34 on CIFAR-10; stem not named",
            f"{series(networks)}; {_STEM[run.stem]}",
        ),
        ("outputs", "softmax over two", "the same; f ≥ ½ is positive"),
        ("initial weights", "random", "torchvision’s distributions, drawn afresh for each repeat"),
        ("task", "first class (T-shirt/top, airplane) against the rest", "the same; one image in ten is positive"),
        ("batch", "100", "100"),
        ("optimiser", "SGD, momentum 0.9, weight decay 10⁻⁴", "the same"),
        ("learning rate", "0.01; schedule not named", f"{run.learning_rate:g}, constant"),
        ("epochs", "120", f"{run.epochs}"),
        (
            "repeats",
            "5",
            "5 of the paper’s losses and of those beside them, 3 under a remedy and under label noise; split, initial "
            "weights and order of rows depend on the repeat alone, not on the loss",
        ),
        ("validation", "10 % of the training set at random, in each experiment", "the same"),
        (
            "augmentation",
            "4 pixels of padding, random 32×32 crop, random horizontal flip",
            "the same, in training only",
        ),
        (
            "normalisation",
            "per-pixel mean subtraction",
            "pixels from 0 to 1, minus their mean over the training split; no division",
        ),
        ("evaluation", "not described", "the 32×32 centre, no flip; the whole split after every epoch"),
        ("channels", "grey images repeated three times", "the same"),
        (
            "class weights",
            "n/n_y of the training set",
            "n/n_y of the training split and a mean over the batch, which is not divided by the sum of weights",
        ),
        ("p of the surrogate", "n₁/n", "n₁/n of the training split"),
        (
            "macro soft F_β",
            "one minus the smoothed F_β; of which rows is not said",
            "of each mini-batch in training, of the whole split where a loss is reported",
        ),
        ("β", "0.5, 1, 2, 3", series([beta_name(b) for b in BETAS])),
        (
            "precision",
            "not named",
            f"{run.precision} activations, 32-bit weights, statistics and losses; some runs all in fp32",
        ),
        ("losses beside", "–", "plain BCE, tangent F_β, the paper’s q form of the surrogate; GCE under label noise"),
    )
