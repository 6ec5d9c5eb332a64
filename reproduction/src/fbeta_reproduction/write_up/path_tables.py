"""Gradients along training, and label noise, as tables."""

from __future__ import annotations

from fbeta.numerals import fixed
from fbeta_reproduction.naming import LOSS_NAMES, dataset_name, loss_name, median, score_name, spread
from fbeta_reproduction.protocol import BETAS, NOISE, Q_NOISE, Run, faithful
from fbeta_reproduction.protocol import noise as planned_noise
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.gradients import GradientPaths
from fbeta_reproduction.verdicts.noise_claims import noisy
from fbeta_reproduction.write_up.blocks import Block, DataTable, Heading, Text
from fbeta_reproduction.write_up.cells import NOT_YET


def gradients(results: Results) -> list[Block]:
    """A table of cosines and one of Jensen's gaps for each data set that was measured."""
    blocks: list[Block] = []
    for paths in results.gradients:
        blocks += [Heading(f"{dataset_name(paths.dataset)}: cosine with the gradient of macro soft F_β", 3)]
        heading = ("loss", *(f"with {score_name(beta)}" for beta in BETAS))
        losses = [*faithful(paths.dataset, repeats=1), Run(paths.dataset, "bce")]
        blocks += [DataTable(heading, tuple(_cosines(paths, run) for run in losses))]
        blocks += [Text(_ways(paths))]
        blocks += [Heading(f"{dataset_name(paths.dataset)}: Jensen’s gaps along the surrogate’s way", 3)]
        heading = ("loss", "epoch", "positives", "negatives", "loss − approximation", "balanced BCE − its bound")
        blocks += [DataTable(heading, tuple(row for beta in BETAS for row in _jensen(paths, beta)), left=2)]
    return [Text(_GRADIENTS), *blocks] if blocks else [NOT_YET]


_GRADIENTS = (
    "Every loss’s gradient at the same network, over all its parameters, on training rows that are not augmented, with "
    "the running statistics of batch normalisation, in single precision; 1 − F̃ and −log F̃ have the same direction. "
    "Jensen’s gap on positives is log E₊[f] − E₊[log f], on negatives log(a + E₋[f]) − E₋[log(a + f)] with "
    "a = β²p/(1−p), both at least 0; the paper’s approximation of its loss leaves them out. Made by "
    "`fbeta paper gradients`."
)


def _cosines(paths: GradientPaths, run: Run) -> tuple[str, ...]:
    along = run.label if paths.along(run.label) else "surrogate-b1"
    return (loss_name(run), *(spread(paths.cosines(run.label, beta, along=along), 2) for beta in BETAS))


def _ways(paths: GradientPaths) -> str:
    return (
        f"Median [lowest, highest] over {paths.repeats} repeats and the epochs {paths.when}, each loss "
        f"along its own training, {LOSS_NAMES['bce']} along that of the surrogate F₁. Device: "
        f"{paths.machine.get('device', '?')}."
    )


def _jensen(paths: GradientPaths, beta: float) -> list[tuple[str, ...]]:
    place, loss = BETAS.index(beta), f"surrogate-b{beta:g}"
    rows = []
    for epoch in paths.measured:
        here = [p for p in paths.along(loss) if p["epoch"] == epoch]
        columns = (
            [p["missed"] for p in here],
            [p["alarmed"][place] for p in here],
            [p["missed"] - p["alarmed"][place] for p in here],
            [p["missed"] + p["alarmed_bce"] for p in here],
        )
        rows.append((f"surrogate {score_name(beta)}", f"{epoch}", *map(spread, columns)))
    return rows


def label_noise(results: Results) -> list[Block]:
    """Test F₁ of the losses by share of turned labels, at ½ and at the cut of validation rows."""
    blocks: list[Block] = []
    for dataset in results.datasets:
        found = {share: _groups(results, dataset, share) for share in (0.0, *NOISE)}
        if not any(found[share] for share in NOISE):
            continue
        epochs = min(g.reached for share in NOISE for g in found[share].values())
        names = dict.fromkeys(_key(run) for run in planned_noise(dataset))
        heading = ("loss", "decided at", *("no noise" if not s else f"{100 * s:g} %" for s in found), "40 % − none")
        rows = []
        for key in names:
            for tuned in (False, True):
                cells = [_scores(found[share].get(key), epochs, tuned=tuned) for share in found]
                lost = median(cells[-1]) - median(cells[0])
                decided = "cut of validation rows" if tuned else "½"
                rows.append((_named(dataset, key), decided, *map(spread, cells), fixed(lost)))
        blocks += [
            Heading(dataset_name(dataset), 3),
            DataTable(heading, tuple(rows), left=2),
            Text(_noise_words(epochs)),
        ]
    return [Text(_NOISE), *blocks] if blocks else [NOT_YET]


_NOISE = (
    "Each label of the rows to train and validate on is turned around with the same chance, the same ones for every "
    "loss of a repeat; class weights and p are those of the labels that the loss sees. Test labels are true."
)

_Key = tuple[str, float]


def _key(run: Run) -> _Key:
    return run.loss, run.q


def _named(dataset: str, key: _Key) -> str:
    loss, q = key
    return loss_name(Run(dataset, loss, 1.0 if loss == "surrogate" else None, q=q))


def _groups(results: Results, dataset: str, share: float) -> dict[_Key, Repeats]:
    keys = dict.fromkeys(_key(run) for run in planned_noise(dataset))
    found = {(loss, q): noisy(results, dataset, loss, share, q) for loss, q in keys}
    return {key: g for key, g in found.items() if g is not None}


def _scores(g: Repeats | None, epochs: int, *, tuned: bool) -> list[float]:
    return [] if g is None else g.until(epochs).scores("test", tuned=tuned)


def _noise_words(epochs: int) -> str:
    return (
        f"Test F₁, median [lowest, highest] of the repeats, mean of the last five of {epochs} epochs; runs without "
        "noise that went on are read there. The rows that the cut is tuned on are noisy, too. Zhang and Sabuncu use "
        f"q = {Q_NOISE:g} throughout."
    )
