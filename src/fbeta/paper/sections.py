"""The tables of the reproduction: final scores, correlations, readings, remedies, precision, machines."""

from __future__ import annotations

from collections import defaultdict

from fbeta.paper import correlation, plateau
from fbeta.paper.blocks import Block, Heading, Table, Text
from fbeta.paper.naming import (
    change_name,
    dataset_name,
    full_name,
    loss_name,
    median,
    number,
    score_name,
    spread,
)
from fbeta.paper.protocol import BETAS, Q_REMEDY, faithful
from fbeta.paper.protocol import readings as planned_readings
from fbeta.paper.results import PAPER, Array, Group, Kind, Result, Results
from fbeta.paper.statistics import CORRELATIONS

NOT_YET = Text("Not run yet.")


def final_scores(results: Results) -> list[Block]:
    """Test scores of every loss, at ½ and at the cut tuned on the validation rows."""
    blocks: list[Block] = []
    for dataset in results.datasets:
        groups = results.of(dataset, "faithful", "beside")
        if not groups:
            continue
        names = tuple(score_name(b) for b in BETAS)
        half = [
            (loss_name(g.run), _n(g), *(_score(g, b) for b in BETAS), _accuracy(g), _share(g)) for g in groups
        ]
        tuned = [(loss_name(g.run), _n(g), *(_score(g, b, tuned=True) for b in BETAS)) for g in groups]
        blocks += [
            Heading(f"{dataset_name(dataset)}, cut at ½", 3),
            Table(("loss", "n", *names, "accuracy", "predicted positive"), tuple(half)),
            Heading(f"{dataset_name(dataset)}, cut tuned on validation rows", 3),
            Table(("loss", "n", *names), tuple(tuned)),
        ]
    return blocks or [NOT_YET]


def matrices(results: Results) -> list[Block]:
    """Three tables for each data set: how closely each loss follows each score."""
    blocks: list[Block] = []
    for dataset in results.datasets:
        groups = results.of(dataset, "faithful", "beside")
        for name in CORRELATIONS if groups else ():
            rows = []
            for g in groups:
                left = sum(r.left is not None for r in g.results)
                cells = [spread(cell, 2) for cell in correlation.table(g, name)]
                rows.append((loss_name(g.run), f"{left} of {len(g.results)}", *cells))
            heading = ("loss", "left the plateau", *(score_name(b) for b in BETAS))
            blocks += [Heading(f"{dataset_name(dataset)}: {name}", 3), Table(heading, tuple(rows))]
    return blocks or [NOT_YET]


def readings(results: Results) -> list[Block]:
    """Runs that read the paper's text in another way, beside its plain reading."""
    rows = []
    for g in _of(results, "reading"):
        base = _counterpart(results, g)
        rows.append(
            (
                dataset_name(g.run.dataset),
                loss_name(g.run),
                change_name(g.run) or "–",
                f"{len(g.results)}",
                f"{g.reached}" if g.first.finished else f"{g.reached} of {g.run.epochs}",
                _score(g, 1.0),
                _accuracy(g),
                _share(g),
                _learned(g),
                _nan(g),
                _score(base, 1.0) if base else "–",
            )
        )
    heading = (
        "data set",
        "loss",
        "other setting",
        "n",
        "epochs",
        "test F₁ at ½",
        "test accuracy",
        "predicted positive",
        "learned",
        "NaN loss",
        "plain reading after as many epochs, test F₁ at ½",
    )
    return [Table(heading, tuple(rows), left=3), *_missing(results)] if rows else [NOT_YET]


def _missing(results: Results) -> list[Block]:
    """Readings that are planned and not there."""
    there = {(g.run.dataset, g.run.label) for g in results.groups}
    left = [
        f"{dataset_name(run.dataset)}: {full_name(run)}"
        for d in PAPER
        for run in planned_readings(d)
        if (d, run.label) not in there
    ]
    return [Text(f"Not run yet: {'; '.join(left)}.")] if left else []


def remedies(results: Results) -> list[Block]:
    """Ways off the plateau, judged by the score that the loss is for."""
    rows = []
    for g in _of(results, "remedy"):
        base, beta = _counterpart(results, g), g.run.beta or 1.0
        tangent = results.find(g.run.dataset, "tangent", beta)
        seen = [r for r in g.everyone if len(r.epochs) >= plateau.EARLY]
        rows.append(
            (
                dataset_name(g.run.dataset),
                loss_name(g.run),
                g.run.remedy or "q form",
                _n(g),
                f"{len(plateau.early(g))} of {len(seen)}",
                _learned(g),
                score_name(beta),
                _score(g, beta),
                _score(g, beta, tuned=True),
                _score(base, beta) if base else "–",
                _learned(base) if base else "–",
                _score(tangent.until(g.reached), beta) if tangent else "–",
            )
        )
    heading = (
        "data set",
        "loss",
        "remedy",
        "n",
        f"on the plateau after epoch {plateau.EARLY}",
        "learned",
        "score",
        "test, at ½",
        "test, cut tuned on validation rows",
        "without it, at ½",
        "without it, learned",
        "tangent instead, at ½",
    )
    return [_REMEDIES, Table(heading, tuple(rows), left=3), _best_remedy(results)] if rows else [NOT_YET]


_REMEDIES = Text(
    "**prior-bias** starts the last bias at the log odds of the prevalence; **warm-start** trains the first five "
    "epochs with cross entropy; **anneal** goes from cross entropy to the surrogate over twenty epochs; **mix** is "
    "half of each throughout; **rate-warm-up** raises the learning rate over the first five epochs; **q form** is the "
    f"paper’s own noise-robust loss with q = {Q_REMEDY:g}."
)


def _best_remedy(results: Results) -> Text:
    """Which remedy is best, by validation rows: test rows are for the table."""
    groups = _of(results, "remedy")
    settings = sorted({(g.run.dataset, g.run.beta or 1.0) for g in groups})
    firsts = []
    for setting in settings:
        same = [g for g in groups if (g.run.dataset, g.run.beta or 1.0) == setting]
        best = max(same, key=_on_validation)
        firsts.append(best.run.remedy or "q form")
    counts = ", ".join(
        f"{name} in {firsts.count(name)}" for name in sorted(set(firsts), key=firsts.count)[::-1]
    )
    return Text(
        f"All columns of a row are after as many epochs. By the median validation score at ½, the best remedy "
        f"of {len(settings)} settings (data set and β) is: {counts}. `mix` is `SurrogateLoss(blend=0.5)`."
    )


def precision(results: Results) -> list[Block]:
    """Runs in single precision beside those in bfloat16, repeat by repeat where both are there."""
    rows = []
    for g in _of(results, "precision"):
        base = results.find(g.run.dataset, g.run.loss, g.run.beta, q=g.run.q)
        if base is None:
            continue
        base = base.until(g.reached)
        pairs = {r.run.repeat: r.final(_f1(r)) for r in base.results}
        differences = [r.final(_f1(r)) - pairs[r.run.repeat] for r in g.results if r.run.repeat in pairs]
        rows.append(
            (
                dataset_name(g.run.dataset),
                f"{loss_name(g.run)}, {g.run.precision}",
                _n(g),
                _score(g, 1.0),
                _learned(g),
                _n(base),
                _score(base, 1.0),
                _learned(base),
                spread(differences),
            )
        )
    heading = (
        "data set",
        "loss",
        "n",
        "test F₁ at ½",
        "learned",
        "n in bf16",
        "test F₁ at ½ in bf16",
        "learned in bf16",
        "fp32 − bf16, same repeat",
    )
    return [Table(heading, tuple(rows), left=2)] if rows else [NOT_YET]


def machines(results: Results) -> list[Block]:
    """What the runs took, from the headers and the seconds of each epoch."""
    found: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for r in sorted(results, key=lambda r: (*_place(r), r.run.precision)):
        facts = [str(r.machine.get(k, "?")) for k in ("device", "torch", "fbeta")]
        found[(dataset_name(r.run.dataset), r.run.precision, *facts)].append(r)
    rows = []
    for key, some in found.items():
        epochs, seconds = sum(len(r.epochs) for r in some), sum(r.seconds for r in some)
        at_once = sorted({int(r.machine["runs at once"]) for r in some if "runs at once" in r.machine})
        span = (
            "–" if not at_once else f"{at_once[0]}" if len(at_once) == 1 else f"{at_once[0]} to {at_once[-1]}"
        )
        each = number(seconds / epochs, 2) if epochs else "–"
        rows.append((*key, span, f"{len(some)}", f"{epochs}", each, number(seconds / 3600, 2)))
    total = sum(r.seconds for r in results)
    heading = (
        "data set",
        "precision",
        "device",
        "torch",
        "fbeta",
        "runs at once",
        "runs",
        "epochs",
        "seconds per run and epoch",
        "hours",
    )
    words = Text(
        f"In all {number(total, 0)} seconds ({number(total / 3600, 1)} hours) of device time, evaluation of "
        "all three splits after every epoch included."
    )
    return [Table(heading, tuple(rows), left=5), words, *_faithful(results)] if rows else [NOT_YET]


def _faithful(results: Results) -> list[Block]:
    """What the paper's own runs took, once all of them are there."""
    own = [r for d in PAPER for g in results.of(d, "faithful") for r in g.results if r.finished]
    if len(own) < sum(len(list(faithful(d))) for d in PAPER):
        return []
    epochs, minutes = sum(len(r.epochs) for r in own), sum(r.seconds for r in own) / 60
    return [
        Text(
            f"The paper’s own {len(own)} runs, {epochs:,} epochs with their evaluation, took "
            f"{number(minutes, 1)} minutes of that."
        )
    ]


def _place(r: Result) -> tuple[int, str]:
    """The paper's data sets first."""
    return PAPER.index(r.run.dataset) if r.run.dataset in PAPER else len(PAPER), r.run.dataset


def _of(results: Results, kind: Kind) -> list[Group]:
    return [g for dataset in results.datasets for g in results.of(dataset, kind)]


def _counterpart(results: Results, group: Group) -> Group | None:
    """The paper's setting that a reading or a remedy departs from, after as many epochs."""
    run = group.run
    kin = next((x for x in ("bce", "mae", "soft", "surrogate", "tangent") if x in run.loss), run.loss)
    # A reading of the paper's BCE is one of its class-balanced BCE.
    loss = f"balanced-{kin}" if kin in ("bce", "mae") else kin
    found = results.find(run.dataset, loss, run.beta)
    return None if found is None else found.until(group.reached)


def _n(g: Group) -> str:
    short = "" if all(r.finished for r in g.results) else f" (epoch {g.reached} of {g.run.epochs})"
    return f"{len(g.results)}{short}"


def _f1(r: Result) -> Array:
    return r.score("test", 1.0)


def _score(g: Group, beta: float, *, tuned: bool = False) -> str:
    return spread(g.finals(lambda r: r.score("test", beta, tuned=tuned)))


def _on_validation(g: Group) -> float:
    return median(g.finals(lambda r: r.score("val", r.run.beta or 1.0)))


def _accuracy(g: Group) -> str:
    return spread(g.finals(lambda r: r.accuracy("test")))


def _share(g: Group) -> str:
    return spread(g.finals(lambda r: r.share("test")))


def _learned(g: Group) -> str:
    return f"{sum(r.learned for r in g.results)} of {len(g.results)}"


def _nan(g: Group) -> str:
    since = [r.nan_from for r in g.results if r.nan_from is not None]
    return f"{len(since)} of {len(g.results)}, from epoch {min(since)}" if since else "–"
