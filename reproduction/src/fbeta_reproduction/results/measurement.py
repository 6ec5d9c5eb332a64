"""What is written down after an epoch: the loss, and counts from which every score follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions import curve
from fbeta.metrics import Confusion, FBeta
from fbeta_reproduction.protocol import BETAS

SPLITS = ("train", "val", "test")

_LARGEST = np.finfo(np.float32).max


def columns() -> list[str]:
    """The columns of a run's file in order; `row` gives all but the first and the last.

    >>> columns()[:8]
    ['epoch', 'loss', 'train_tp', 'train_fp', 'val_tp', 'val_fp', 'test_tp', 'test_fp']
    >>> columns()[8:11], columns()[-1]
    (['cut0.5', 'cut0.5_tp', 'cut0.5_fp'], 'seconds')
    """
    at_half = [f"{split}_{cell}" for split in SPLITS for cell in ("tp", "fp")]
    tuned = [f"cut{beta:g}{cell}" for beta in BETAS for cell in ("", "_tp", "_fp")]
    return ["epoch", "loss", *at_half, *tuned, "seconds"]


def row(
    logits: Mapping[str, NDArray[np.float32]], target: Mapping[str, NDArray[Any]], loss: float
) -> dict[str, float | int]:
    """Count true and false positives of one run: at f ≥ ½ on every split, on test also at cuts tuned on validation.

    A logit at the cut is positive. Where any logit is NaN the network is broken: nothing is counted, no cut is tuned.

    Shape: 'train', 'val' and 'test' of `logits` and of `target`, which is 0 or 1, ``(n,)`` each.

    >>> z = np.array([2.0, 0.5, -1.0, -3.0], dtype=np.float32)
    >>> found = row(dict.fromkeys(SPLITS, z), dict.fromkeys(SPLITS, np.array([1, 0, 1, 0])), loss=0.7)
    >>> found["test_tp"], found["test_fp"], found["cut2"], found["cut2_tp"], found["cut2_fp"]
    (1, 1, -2.0, 2, 1)
    """
    counts: dict[str, float | int] = {"loss": loss}
    # An infinite logit is beyond every cut between two others: +inf and −inf as cuts mean none and all.
    z = {split: np.clip(logits[split], -_LARGEST, _LARGEST) for split in SPLITS}
    y = {split: np.asarray(target[split]) != 0 for split in SPLITS}
    broken = any(bool(np.isnan(z[split]).any()) for split in SPLITS)
    for split in SPLITS:
        _count(counts, split, z[split], y[split], np.nan if broken else 0.0)
    cuts, at = curve(z["val"], y["val"]) if not broken else (np.array([np.nan]), Confusion(0.0, 0.0, 0.0, 0.0))
    for beta in BETAS:
        # The first of equal scores, which has the fewest positives, as `fbeta.tune` has it.
        cut = float(cuts[np.argmax(FBeta(beta)(at))])
        counts[f"cut{beta:g}"] = cut
        _count(counts, f"cut{beta:g}", z["test"], y["test"], cut)
    return counts


def _count(counts: dict[str, float | int], name: str, z: NDArray[np.float32], y: NDArray[np.bool_], cut: float) -> None:
    # A cut midway between two single-precision logits needs double precision to stay there; NaN is below.
    positive = z >= np.float64(cut)
    hits = int(np.count_nonzero(positive & y))
    counts[f"{name}_tp"] = hits
    counts[f"{name}_fp"] = int(np.count_nonzero(positive)) - hits


def line(row: Mapping[str, float | int]) -> str:
    """One line of a run's file, in the order of `columns`.

    >>> line({name: 1 / 3 if name in ("loss", "cut1", "seconds") else 7 for name in columns()})
    '7,0.333333,7,7,7,7,7,7,7,7,7,0.33333,7,7,7,7,7,7,7,7,0.3333'
    """
    digits = {"loss": ".6g", "seconds": ".4g"}
    names = columns()
    if row.keys() != set(names):
        raise ValueError(f"A row has the columns {', '.join(names)}; got {', '.join(row)}.")
    cells = []
    for name in names:
        whole = name.endswith(("_tp", "_fp")) or name == "epoch"
        cells.append(f"{row[name]:d}" if whole else f"{row[name]:{digits.get(name, '.5g')}}")
    return ",".join(cells)
