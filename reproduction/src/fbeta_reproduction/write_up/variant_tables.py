"""Tables of runs that depart from the paper's setting: other readings of its text, and remedies for the plateau."""

from __future__ import annotations

from collections import Counter

from fbeta_reproduction.naming import change_name, dataset_name, full_name, loss_name, median, score_name
from fbeta_reproduction.protocol import Q_REMEDY, kind, whole_plan
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.survival import EARLY, early
from fbeta_reproduction.write_up.blocks import Block, DataTable, Text
from fbeta_reproduction.write_up.cells import (
    NOT_YET,
    accuracy_cell,
    learned_cell,
    nan_cell,
    of_kind,
    runs_cell,
    score_cell,
    share_cell,
)


def readings(results: Results) -> list[Block]:
    """Runs that read the paper's text in another way, beside its plain reading."""
    rows = []
    for g in of_kind(results, "reading"):
        base = _counterpart(results, g)
        rows.append(
            (
                dataset_name(g.run.dataset),
                loss_name(g.run),
                change_name(g.run) or "–",
                f"{len(g.results)}",
                f"{g.reached}" if g.first.finished else f"{g.reached} of {g.run.epochs}",
                score_cell(g, 1.0),
                accuracy_cell(g),
                share_cell(g),
                learned_cell(g),
                nan_cell(g),
                score_cell(base, 1.0) if base else "–",
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
        "plain reading after the same number of epochs, test F₁ at ½",
    )
    return [DataTable(heading, tuple(rows), left=3), *_missing(results)] if rows else [NOT_YET]


def _missing(results: Results) -> list[Block]:
    """Readings that are planned and not there, or only in some of their repeats."""
    wanted = Counter((run.dataset, full_name(run)) for run in whole_plan() if kind(run) == "reading")
    there = {(g.run.dataset, full_name(g.run)): len(g.results) for g in of_kind(results, "reading")}
    left = [f"{dataset_name(d)}: {name}" for d, name in wanted if (d, name) not in there]
    few = sum(0 < there.get(one, 0) < repeats for one, repeats in wanted.items())
    said = [f"Not run yet: {'; '.join(left)}."] if left else []
    said += [f"{few} of {len(wanted)} readings have fewer repeats than are planned: column n."] if few else []
    return [Text(words) for words in said]


def remedies(results: Results) -> list[Block]:
    """Ways off the plateau, judged by the score that the loss is for."""
    rows = []
    for g in of_kind(results, "remedy"):
        base, beta = _counterpart(results, g), g.run.beta or 1.0
        tangent = results.find(g.run.dataset, "tangent", beta)
        seen = [r for r in g.everyone if len(r.epochs) >= EARLY]
        rows.append(
            (
                dataset_name(g.run.dataset),
                loss_name(g.run),
                g.run.remedy or "q form",
                runs_cell(g),
                f"{len(early(g))} of {len(seen)}",
                learned_cell(g),
                score_name(beta),
                score_cell(g, beta),
                score_cell(g, beta, tuned=True),
                score_cell(base, beta) if base else "–",
                learned_cell(base) if base else "–",
                score_cell(tangent.until(g.reached), beta) if tangent else "–",
            )
        )
    heading = (
        "data set",
        "loss",
        "remedy",
        "n",
        f"on the plateau after epoch {EARLY}",
        "learned",
        "score",
        "test, at ½",
        "test, cut tuned on validation rows",
        "without it, at ½",
        "without it, learned",
        "tangent instead, at ½",
    )
    return [_REMEDIES, DataTable(heading, tuple(rows), left=3), _best_remedy(results)] if rows else [NOT_YET]


_REMEDIES = Text(
    "**prior-bias** starts the last bias at the log odds of the prevalence; **warm-start** trains the first five "
    "epochs with cross entropy; **anneal** goes from cross entropy to the surrogate over twenty epochs; **mix** is "
    "half of each throughout; **rate-warm-up** raises the learning rate over the first five epochs; **q form** is the "
    f"paper’s own noise-robust loss with q = {Q_REMEDY:g}."
)


def _best_remedy(results: Results) -> Text:
    """Which remedy is best, by validation rows: test rows are for the table."""
    groups = of_kind(results, "remedy")
    settings = sorted({(g.run.dataset, g.run.beta or 1.0) for g in groups})
    firsts = []
    for setting in settings:
        same = [g for g in groups if (g.run.dataset, g.run.beta or 1.0) == setting]
        best = max(same, key=_on_validation)
        firsts.append(best.run.remedy or "q form")
    counts = ", ".join(f"{name} in {firsts.count(name)}" for name in sorted(set(firsts), key=firsts.count)[::-1])
    return Text(
        f"All columns of a row are after the same number of epochs. By the median validation score at ½, the best "
        f"remedy of {len(settings)} settings (data set and β) is: {counts}. `mix` is `SurrogateLoss(blend=0.5)`."
    )


def _counterpart(results: Results, group: Repeats) -> Repeats | None:
    """The paper's setting that a reading or a remedy departs from, after the same number of epochs."""
    run = group.run
    kin = next((x for x in ("bce", "mae", "soft", "surrogate", "tangent") if x in run.loss), run.loss)
    # A reading of the paper's BCE is one of its class-balanced BCE.
    loss = f"balanced-{kin}" if kin in ("bce", "mae") else kin
    found = results.find(run.dataset, loss, run.beta)
    return None if found is None else found.until(group.reached)


def _on_validation(g: Repeats) -> float:
    return median(g.scores("val", g.run.beta or 1.0))
