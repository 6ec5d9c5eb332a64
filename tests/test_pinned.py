"""Names and numbers that other people's code relies on, as they were when they were written down.

`python tests/test_pinned.py` adds numbers that are missing; with `--anew` it writes all of them again, which is right
only where a change of them is meant, and said in the changelog.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from catalogue import ANCHORED, LOSSES, METRICS, batch
from fbeta import Confusion, losses, tune

PINNED = Path(__file__).with_name("pinned.json")


def metric_numbers():
    found = {}
    for m in METRICS:
        cells = Confusion(tp=8, fp=2, fn=4, tn=86)
        slopes = [float(x) for x in m.gains(cells)]
        place = [m.anchors(0.1).negative, m.anchors(0.1).positive] if m in ANCHORED else []
        found[str(m)] = [float(m(cells)), *slopes, *place]
    return found


def loss_numbers():
    """Three steps of training, so that what a loss remembers shows, and the gradient of the last."""
    found = {}
    for case in LOSSES:
        loss = case.make()
        values = []
        for seed in range(3):
            z, y = batch(n=60, seed=seed, dtype=torch.float64)
            z.requires_grad_()
            value = loss(z, y)
            value.backward()
            values.append(value.item())
        found[case.id] = [*values, *z.grad[:5].tolist(), z.grad.abs().sum().item()]
    return found


def several_columns():
    z, y = batch(n=90, dtype=torch.float64)
    z, y = z.reshape(30, 3), y.reshape(30, 3)
    found = {}
    for name in losses.names():
        options = {"metric": "f2", "class_counts": ([25, 26, 27], [5, 4, 3])}
        for average in ("macro", "micro"):
            given = options if average == "macro" else options | {"class_counts": (78, 12)}
            loss = losses.get(name, task="multilabel", num_labels=3, average=average, **given)
            x = z.clone().requires_grad_()
            value = loss(x, y)
            value.backward()
            found[f"{name} {average}"] = [value.item(), x.grad.abs().sum().item()]
    return found


def cut_numbers():
    z, y = (x.numpy() for x in batch(n=400, seed=3, dtype=torch.float64))
    p = 1 / (1 + np.exp(-z))
    found = {}
    for m in ("f1", "f2", "mcc", "cost:fp=1,fn=20", "kappa", "gmean"):
        for rule in ("exact", "plugin", "shrunk", "constant"):
            for kind, scores in (("probability", p), ("logit", z)):
                cut = tune(scores, y, m, rule=rule, kind=kind)
                found[f"{m} {rule} {kind}"] = [cut.value, cut.score, cut.n_positive, *cut.interval.score]
    return found


PARTS = {"metrics": metric_numbers, "losses": loss_numbers, "columns": several_columns, "cuts": cut_numbers}


@pytest.mark.parametrize("part", PARTS)
def test_numbers_are_as_they_were(part):
    kept = json.loads(PINNED.read_text())[part]
    found = PARTS[part]()
    assert set(kept) == set(found)
    for name, values in kept.items():
        assert found[name] == pytest.approx(values, rel=1e-9, abs=1e-12, nan_ok=True), name


if __name__ == "__main__":
    kept = {} if "--anew" in sys.argv[1:] else json.loads(PINNED.read_text())
    numbers = {}
    for name, part in PARTS.items():
        found = part()
        numbers[name] = found | {key: kept[name][key] for key in found if key in kept.get(name, ())}
    PINNED.write_text(json.dumps(numbers, separators=(",", ":")).replace("]", "]\n") + "\n")
