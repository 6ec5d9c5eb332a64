"""Made-up JSON of comparisons, decisions, cuts and sketches: a ValueError in one sentence, or what can be used.

What is read can be shown and written again, and no text in it becomes markup or an order to the terminal.
"""

import contextlib
import json
import math

import numpy as np
from rich.console import Console

from attack.mutants import CELLS as TEXTS
from attack.mutants import of_bytes, of_json


def prepare():
    """Each kind of JSON, as the library writes it."""
    from fbeta import Decision, tune
    from fbeta.decisions import Sketch
    from made_up_comparison import comparison

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (60, 3))
    z = rng.normal(size=(60, 3)) + y
    p, classes = 1 / (1 + np.exp(-z)), z.argmax(1)[:, None] == np.arange(3)
    one = Decision.fit(z[:, 0], y[:, 0], "fbeta:beta=2", kind="logit", subject_to={"recall": 0.5})
    made = {
        "decision": one,
        "decision for others": one.adapt(at_prevalence=0.1),
        "decision of columns": Decision.fit(p, y, "mcc", kind="probability"),
        "decision of classes": Decision.fit(z, classes, "f1", kind="logit", exclusive=True),
        "decision of rows": Decision.fit(z, y, "f1", kind="logit", average="samples"),
        "decision of a curve": Decision.fit(
            np.tile(p[:, 0], 9), np.tile(y[:, 0], 9), "f1", kind="probability", rule="exact"
        ),
        "cut": tune(z[:, 0], y[:, 0], "f1", kind="logit"),
        "cuts": tune(z, y, "f1", kind="logit"),
        "sketch": Sketch(bins=50).add(p[:, 0], y[:, 0], rng.random(60)),
    }
    return {"comparison": comparison(rows=60, seeds=2).to_json()} | {
        name: json.dumps(kind.to_dict()) for name, kind in made.items()
    }


def attempt(made, luck, folder):
    """One mutant, read and used."""
    name = luck.choice([*made])
    data = (of_json if luck.random() < 0.8 else of_bytes)(made[name].encode(), luck)
    for _ in range(luck.choice([0, 0, 1, 3])):  # a text in place of another
        data = data.replace(
            luck.choice([b'"f1"', b'"transactions.csv"', b'"bce"', b'"linear"', b'"exact"', b'"F\\u2082"']),
            json.dumps(luck.choice(TEXTS)).encode(),
        )
    (folder / "made-up.json").write_bytes(data)
    try:
        use = USES[name.split()[0]](folder / "made-up.json")
    except ValueError as error:
        said = str(error)
        assert len(said) < 2000, f"{len(said)} letters: {said[:200]}"
        return f"{name}: refused"
    use()
    return f"{name}: used"


def read_json(path):
    try:
        return json.loads(path.read_bytes())
    except RecursionError as error:
        raise ValueError("too deep") from error


def comparison(path):
    from fbeta.comparison.result import Comparison
    from fbeta.report import page, terminal

    found = Comparison.read(path)

    def use():
        try:
            whole, console = page(found), Console(file=open("/dev/null", "w"), record=True, width=100)  # noqa: SIM115
            console.print(terminal(found))
        except ValueError:  # what does not fit together is said
            return
        assert "<script>alert(1)" not in whole
        assert "\x1b" not in console.export_text()
        assert Comparison.from_json(found.to_json()) == found or "nan" in found.to_json()

    return use


def decision(path):
    from fbeta import Decision

    said = read_json(path)
    found = Decision.from_dict(said)

    def use():
        several = found.several
        scores = np.array([-1e308, -3.0, 0.0, 0.5, 3.0, 1e308])
        if found.kind == "probability":
            scores = np.array([0.0, 1e-300, 0.1, 0.5, 1 - 1e-16, 1.0])
        scores = np.tile(scores[:, None], len(found.cuts)) if several else scores
        with np.errstate(all="ignore"):
            p, called = found.probability(scores), found.decide(scores)
            assert p.shape == scores.shape
            assert np.asarray(called).shape == scores.shape
            found.margin(scores)
            found.explain()
            again = Decision.from_dict(json.loads(json.dumps(found.to_dict())))
            assert (np.asarray(again.decide(scores)) == called).all()
        for how in ({"at_prevalence": 0.3}, {"scores": np.resize(scores[1:5], (80, *scores.shape[1:]))}):
            try:
                moved = found.adapt(**how)
            except ValueError:
                continue
            assert moved.probability(scores).shape == scores.shape
            moved.decide(scores)
            moved.explain()
            Decision.from_dict(json.loads(json.dumps(moved.to_dict())))

    return use


def sketch(path):
    from fbeta.decisions import Sketch

    found = Sketch.from_dict(read_json(path))

    def use():
        assert found.counts.shape == (5, found.bins)
        assert (Sketch.from_dict(json.loads(json.dumps(found.to_dict()))).counts == found.counts).all()
        for wanted in (found.tune, found.lost):
            with contextlib.suppress(ValueError):  # no rows, or none of a class
                wanted("f1")
        with contextlib.suppress(ValueError):
            found.adapt(found)

    return use


def cut(path):
    from fbeta import Threshold

    found = Threshold.from_dict(read_json(path))

    def use():
        scores = np.array([-math.inf, -3.0, 0.0, 0.5, 3.0, math.inf])
        value = np.asarray(found.value)
        called = found.decide(np.tile(scores[:, None], value.size) if value.ndim else scores)
        assert called.dtype == bool
        assert str(Threshold.from_dict(json.loads(json.dumps(found.to_dict())))) == str(found)

    return use


USES = {"comparison": comparison, "decision": decision, "cut": cut, "cuts": cut, "sketch": sketch}
