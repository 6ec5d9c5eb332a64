"""Results as arrays, statistics against outside references, and every figure from whole and from partial results."""

import io
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats
from sklearn.metrics import accuracy_score, fbeta_score

from fbeta_reproduction import figures
from fbeta_reproduction.figures import style
from fbeta_reproduction.protocol import BETAS, PROTOCOL, Run, faithful, kind
from fbeta_reproduction.results import correlation
from fbeta_reproduction.results.correlation import of_steps, pearson, spearman
from fbeta_reproduction.results.folder import Repeats, Results, read
from fbeta_reproduction.results.run_result import RunResult
from fbeta_reproduction.results.survival import early, staying, survival, wilson
from fbeta_reproduction.status import status
from fbeta_reproduction.verdicts.training_claims import superiority
from fbeta_reproduction.write_up import plateau_table
from made_up_results import ROWS, table_of, write_all, write_run


def run_with(share, *, epochs=None, nan_from=None, **fields):
    """A run that predicts this share of both classes positive after each epoch."""
    share = np.asarray(share, dtype=float)
    counts = dict.fromkeys(("train", "val", "test"), (1000, 100))
    columns = {"epoch": np.arange(1, len(share) + 1.0), "loss": np.linspace(1, 0.5, len(share))}
    for split in counts:
        columns |= {f"{split}_tp": np.round(100 * share), f"{split}_fp": np.round(900 * share)}
    if nan_from is not None:
        columns = {k: np.where(columns["epoch"] >= nan_from, 0.0, v) if k != "epoch" else v for k, v in columns.items()}
        columns["loss"] = np.where(columns["epoch"] >= nan_from, np.nan, 1.0)
    run = Run("cifar10", "surrogate", 1.0, epochs=epochs or len(share), **fields)
    return RunResult(run, counts, {}, columns)


# Results ----------------------------------------------------------------------------------------------------------


def test_scores_are_sklearns(tmp_path):
    run = Run("digits", "surrogate", 2.0, epochs=4)
    write_run(tmp_path, run)
    r = read(tmp_path).groups[0].results[0]
    for split in ("train", "val", "test"):
        rows, positives = ROWS["digits"][split]
        y = np.arange(rows) < positives
        for e in range(4):
            tp, fp = (int(r.columns[f"{split}_{cell}"][e]) for cell in ("tp", "fp"))
            predicted = np.where(y, np.arange(rows) < tp, np.arange(rows) < positives + fp)
            for beta in BETAS:
                assert r.score(split, beta)[e] == pytest.approx(fbeta_score(y, predicted, beta=beta))
            assert r.accuracy(split)[e] == pytest.approx(accuracy_score(y, predicted))
            assert r.share(split)[e] == pytest.approx(predicted.mean())
    tuned = r.score("test", 0.5, tuned=True)
    tp, fp, positives = r.columns["cut0.5_tp"], r.columns["cut0.5_fp"], ROWS["digits"]["test"][1]
    np.testing.assert_allclose(tuned, 1.25 * tp / (1.25 * tp + 0.25 * (positives - tp) + fp))
    with pytest.raises(ValueError, match="kept for test, not val"):
        r.score("val", 1.0, tuned=True)


@pytest.mark.parametrize(
    ("share", "left"),
    [
        ([1, 1, 1, 0.5, 0.4, 0.3], 4),
        ([0.6, 0.5, 0.4], 1),
        ([1, 1, 1], None),
        ([1, 0.9, 1, 1, 0.9, 0.9, 0.9, 1], 5),  # one epoch off is not a departure, coming back is not undone
        ([1, 1, 0.5], 3),  # fewer than three are left
        ([0.991, 0.99, 0.99, 0.99], 2),  # 0.99 itself is off
    ],
)
def test_leaving_the_plateau(share, left):
    r = run_with(share)
    assert r.left == left
    assert r.watched == ((left, True) if left else (len(share), False))


def test_a_nan_ends_the_watch():
    on = run_with([1, 1, 1, 1], nan_from=3)
    assert (on.left, on.watched, on.nan_from, on.learned) == (None, (2, False), 3, False)
    off = run_with([0.5, 0.5, 0.5, 0.5], nan_from=3)
    assert (off.left, off.watched) == (1, (1, True))
    assert run_with([1, 1], nan_from=1).watched == (0, False)
    assert math.isinf(off.converged)


def test_a_loss_without_a_value_is_not_a_broken_network():
    r = run_with([0.5, 0.0, 0.2])
    r = replace(r, columns=r.columns | {"loss": np.array([1.0, np.nan, 0.9]), "cut1": np.zeros(3)})
    assert (r.nan_from, r.alive.all(), r.left) == (None, True, 1)
    assert np.isfinite(pearson(r.loss, r.score("train", 1.0)))


def test_learned_and_converged():
    r = run_with([1, 1, 1])
    assert not r.learned  # calling everything positive is no achievement
    good = RunResult(
        r.run, r.counts, {}, r.columns | {"train_fp": np.array([900.0, 100.0, 10.0]), "train_tp": np.full(3, 90.0)}
    )
    assert good.learned
    assert good.final(np.arange(12.0)) == 9.0  # mean of the last five
    f = good.score("train", 1.0)
    assert good.converged == 1 + np.flatnonzero(f >= 0.9 * f.mean())[0]


def test_kinds_groups_and_order(tmp_path):
    write_all(tmp_path, datasets=("cifar10",), repeats=2, epochs=4)
    found = read(tmp_path)
    assert found.datasets == ("cifar10",)
    labels = [g.run.label for g in found.of("cifar10", "faithful")]
    assert labels == [f"{loss}-b{b:g}" for loss in ("surrogate", "soft") for b in BETAS] + [
        "balanced-bce",
        "balanced-mae",
    ]
    assert {g.run.label for g in found.of("cifar10", "precision")} == {"surrogate-b1-fp32"}
    assert {g.run.remedy for g in found.of("cifar10", "remedy")} == {"bias-4", "anneal20"}
    readings = {"surrogate-b1-lr0.03-fp32", "surrogate-b1-cifar-stem-fp32", "bce-unclamped-fp32"}
    assert {g.run.label for g in found.of("cifar10", "reading")} == readings
    assert kind(Run("cifar10", "surrogate", 1.0, q=0.3)) == "beside"
    one = found.find("cifar10", "surrogate", 1.0)
    assert (len(one.results), len(one.short)) == (2, 20)
    assert {r.run.epochs for r in one.short} == {3}


def test_quantiles_take_the_runs_that_got_that_far():
    g = Repeats((run_with([1, 1, 0.5]), run_with([0.5, 0.5], epochs=3)))
    epochs, (low, middle, high) = g.quantiles(lambda r: r.share("train"))
    np.testing.assert_allclose(epochs, [1, 2, 3])
    np.testing.assert_allclose([low, middle, high], [[0.5, 0.5, 0.5], [0.75, 0.75, 0.5], [1, 1, 0.5]])
    assert g.reached == 2


def test_files_that_are_no_runs_are_named(tmp_path):
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "x.csv").write_text('# {"run": {"nonsense": 1}}\nepoch,loss\n')
    with pytest.raises(ValueError, match=r"x\.csv does not describe a run of this protocol .* move it"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"train": [', '"learn": [', "no train"),
        ("test_tp", "test_hits", "no test_tp"),
        ('"dataset": "digits"', '"dataset": "mnist"', "mnist"),
        ('"counts": {', '"counts": 5, "other": {', "items"),
        ('"repeat": 0', '"repeat": 1', "it is digits/soft-b1-r1"),  # a copy would count twice
    ],
)
def test_a_file_of_another_make_is_an_error_in_figures_and_a_line_in_status(tmp_path, old, new, why):
    run = Run("digits", "soft", 1.0, epochs=2)
    write_run(tmp_path, run)
    path = tmp_path / f"{run.id}.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=f"does not describe a run of this protocol .*{why}.*; move it out"):
        read(tmp_path)
    (row,) = status(tmp_path, [run])
    assert row["state"] == "damaged"
    assert why in row["error"]


def test_results_of_another_protocol_are_not_shown(tmp_path):
    write_run(tmp_path, Run("digits", "soft", 1.0, epochs=2))
    (tmp_path / "protocol.json").write_text(json.dumps(PROTOCOL | {"batch": 128}))
    for look in (read, lambda folder: status(folder, [])):
        with pytest.raises(ValueError, match=r"another protocol \(batch is 128 there and 100 here\)"):
            look(tmp_path)


# Statistics -------------------------------------------------------------------------------------------------------


def test_a_run_that_has_what_the_plan_asks_for_is_done(tmp_path):
    run = Run("cifar10", "unclamped-bce", precision="fp32")
    write_run(tmp_path, run, epochs=50)
    (row,) = status(tmp_path, [replace(run, epochs=30)])
    assert (row["state"], row["epochs"], row["wanted"]) == ("done", 50, 30)
    (row,) = status(tmp_path, [])
    assert (row["state"], row["wanted"]) == ("stopped", 120)


def test_correlation_off_the_plateau_leaves_its_epochs_out():
    run = Run("cifar10", "surrogate", 1.0, epochs=30)
    t = np.arange(30)
    rng = np.random.default_rng(0)
    rows, positives = ROWS["cifar10"]["train"]
    # Twelve epochs on the plateau, then a loss that has nothing to do with the score.
    columns = {
        "epoch": t + 1.0,
        "loss": np.where(t < 12, 5.0, rng.normal(size=30)),
        "train_tp": np.where(t < 12, positives, rng.integers(positives // 2, positives, 30)).astype(float),
        "train_fp": np.where(t < 12, rows - positives, rng.integers(0, 500, 30)).astype(float),
    }
    r = RunResult(run, ROWS["cifar10"], {}, columns)
    off = r.score("train", 1.0)[12:]
    assert correlation.of_run(r, 1.0) < -0.9
    found = correlation.off_plateau(Repeats((r,)))[1]
    assert found == pytest.approx([stats.pearsonr(columns["loss"][12:], off)[0]])
    assert abs(found[0]) < 0.5
    short = replace(r, columns={k: v[:21] for k, v in columns.items()})  # nine epochs off it are too few
    assert correlation.off_plateau(Repeats((short,))) == [[], [], [], []]


def test_correlations_are_scipys():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 40).astype(float)  # ties
    y = x + rng.normal(size=40)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y)[0])
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y)[0])
    assert of_steps(x, y) == pytest.approx(stats.pearsonr(np.diff(x), np.diff(y))[0])
    assert math.isnan(spearman(x, np.ones(40)))
    gap = np.where(np.arange(40) == 7, np.nan, y)
    assert pearson(x, gap) == pytest.approx(stats.pearsonr(np.delete(x, 7), np.delete(y, 7))[0])


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (3, 5), (5, 5), (17, 64)])
def test_wilson_is_scipys(hits, n):
    ci = stats.binomtest(hits, n).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(hits, n), (ci.low, ci.high), atol=1e-12)


def test_survival_is_scipys_and_wilsons_without_censoring():
    times, happened = [3, 1, 7, 7, 2, 5, 5, 7], [True, True, False, False, True, False, True, False]
    s = survival(times, happened)
    data = stats.CensoredData.right_censored(times, ~np.array(happened))
    np.testing.assert_allclose(s.share, stats.ecdf(data).sf.evaluate(s.epochs))
    assert np.all((0 <= s.low) & (s.low <= s.share) & (s.share <= s.high) & (s.high <= 1))
    whole = survival([1, 2, 2, 9], [True] * 4, until=12)
    for e, share in ((1, 0.75), (2, 0.25), (8, 0.25), (9, 0.0), (12, 0.0)):
        assert whole.share[e - 1] == share
        np.testing.assert_allclose((whole.low[e - 1], whole.high[e - 1]), wilson(4 * share, 4), atol=1e-12)
    assert whole.median == 2
    assert math.isinf(survival([4, 4, 4], [True, False, False]).median)
    assert len(survival([0.0], [False]).epochs) == 0


def test_an_interval_is_as_wide_as_the_few_that_are_still_watched_make_it():
    # One of ten left at once, eight were watched for an epoch only: what is known later rests on the last one.
    s = survival([1, 1, 1, 1, 1, 1, 1, 1, 1, 5], [True] + [False] * 9)
    np.testing.assert_allclose(s.share, 0.9)
    np.testing.assert_allclose((s.low[0], s.high[0]), wilson(9, 10))
    np.testing.assert_allclose((s.low[4], s.high[4]), wilson(1, 1 / 0.9))
    assert s.low[4] < 0.3


def test_a_median_that_nobody_saw_is_not_never():
    stuck = [run_with([1.0] * 5) for _ in range(3)]
    group = Repeats((run_with([0.5] * 10),), tuple(stuck))
    assert plateau_table._row(group)[5] == "> 5"
    assert plateau_table._row(Repeats((run_with([1.0] * 4 + [0.5] * 6),)))[5] == "5"


def test_superiority_is_mann_and_whitneys():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 5, 12).tolist(), rng.integers(1, 7, 9).tolist()
    assert superiority(x, y) == pytest.approx(stats.mannwhitneyu(x, y)[0] / (12 * 9))


def test_short_runs_count_as_long_as_they_lasted():
    long = [run_with([1.0] * 4 + [0.5] * 6), run_with([0.5] * 10)]
    short = [run_with([1.0, 1.0, 1.0]), run_with([1.0, 1.0, 1.0])]
    s = staying(long + short)
    # Three of four are on it; of the one that is watched past epoch 3 it is known when it left.
    np.testing.assert_allclose(s.share, [0.75] * 4 + [0.0] * 6)
    assert len(early(Repeats(tuple(long), tuple(short)))) == 3


# Figures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def partial(tmp_path_factory):
    """One data set, two repeats stopped at different epochs, no macro soft F₃, a NaN, one β stuck."""
    folder = tmp_path_factory.mktemp("partial")
    for run in faithful("cifar10", 2, 12):
        if (run.loss, run.beta) == ("soft", 3.0):
            continue
        columns = None
        if (run.loss, run.beta) == ("surrogate", 2.0):
            columns = table_of(run, np.random.default_rng(0))
            for split, (n, p) in ROWS["cifar10"].items():
                columns |= {f"{split}_tp": np.full(12, p), f"{split}_fp": np.full(12, n - p)}
        nan_from = 3 if run.loss == "balanced-bce" else None
        write_run(folder, run, epochs=7 if run.repeat else 9, nan_from=nan_from, columns=columns)
    write_run(folder, Run("cifar10", "tangent", 1.0, epochs=12), nan_from=1)
    return read(folder)


@pytest.fixture(scope="module")
def drawn(partial):
    return {item.name: figures.draw(item, partial) for item in figures.catalogue(partial)}


def words(figure):
    legends = [t.get_text() for box in (figure, *figure.axes) for x in _legends(box) for t in x.get_texts()]
    return " | ".join([t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text"))] + legends)


def _legends(box):
    return box.legends if hasattr(box, "legends") else filter(None, [box.get_legend()])


def test_catalogue_of_partial_results(drawn):
    assert list(drawn) == [
        "figure-1-losses", "figure-5-convergence-cifar10", "figure-6-surrogate-cifar10", "figure-7-soft-cifar10",
        "correlation-cifar10", "share-cifar10", "cuts-cifar10", "survival",
    ]  # fmt: skip


def test_the_papers_numbers_of_figures():
    group = Repeats((run_with([1.0]),))
    both = Results(
        tuple(
            replace(group, results=tuple(replace(r, run=replace(r.run, dataset=d, loss=loss)) for r in group.results))
            for d in ("fashion-mnist", "cifar10")
            for loss in ("surrogate", "soft")
        )
    )
    names = [item.name for item in figures.catalogue(both)]
    assert [n for n in names if n.startswith("figure")] == [
        "figure-1-losses", "figure-2-convergence-fashion-mnist", "figure-3-surrogate-fashion-mnist",
        "figure-4-soft-fashion-mnist", "figure-5-convergence-cifar10", "figure-6-surrogate-cifar10",
        "figure-7-soft-cifar10",
    ]  # fmt: skip


def test_figures_say_what_is_missing(drawn):
    for name in ("figure-5-convergence-cifar10", "share-cifar10", "cuts-cifar10", "survival", "correlation-cifar10"):
        assert "balanced BCE: NaN loss in 2 of 2 runs, from epoch 3" in words(drawn[name]), name
    for name in ("figure-5-convergence-cifar10", "share-cifar10", "cuts-cifar10", "correlation-cifar10"):
        assert "not finished: epoch 7 of 12" in words(drawn[name]), name
    assert "n = 2" in words(drawn["figure-5-convergence-cifar10"])
    assert "β=2: –" in words(drawn["figure-6-surrogate-cifar10"])  # a constant score correlates with nothing
    assert "surrogate F₂  (0/2)" in words(drawn["correlation-cifar10"])


def test_scatter_shows_the_first_repetition(drawn, partial):
    g = partial.find("cifar10", "surrogate", 1.0)
    first = g.results[0]
    panel = drawn["figure-6-surrogate-cifar10"].axes[1]  # against F₁
    points = np.concatenate([c.get_offsets() for c in panel.collections])
    wanted = np.column_stack([first.loss, first.score("train", 1.0)])
    for x, y in wanted:
        assert np.any(np.all(np.isclose(points, [x, y]), axis=1))
    assert len(points) == sum(len(h.first.epochs) for h in partial.family("cifar10", "surrogate"))


def test_convergence_draws_medians(drawn, partial):
    g = partial.find("cifar10", "soft", 1.0)
    panel = drawn["figure-5-convergence-cifar10"].axes[1]  # training F₁ of macro soft losses
    _, (_, middle, _) = g.quantiles(lambda r: r.score("train", 1.0))
    thick = [line.get_ydata() for line in panel.lines if line.get_linewidth() > 1.5]
    assert any(len(y) == len(middle) and np.allclose(y, middle) for y in thick)


def test_figure_1_is_the_papers():
    """−log(1−q), q and log(1+q) at β = 1, p = ½."""
    figure = figures.draw(figures.catalogue(Results(()))[0], Results(()))
    for panel, own in ((figure.axes[0], lambda q: -np.log1p(-q)), (figure.axes[1], np.log1p)):
        for line, f in zip(panel.lines, (lambda q: -np.log1p(-q), lambda q: q, own), strict=True):
            q, y = line.get_data()
            np.testing.assert_allclose(y, f(q), atol=1e-12)


def test_png_is_small_and_the_same_twice(partial):
    for item in figures.catalogue(partial)[-1:]:
        once, again = (style.png(figures.draw(item, partial)) for _ in range(2))
        assert once == again
        assert len(once) < 150_000
        assert Image.open(io.BytesIO(once)).size[0] > 1000


@pytest.mark.slow
def test_every_figure_of_everything(tmp_path):
    write_all(tmp_path / "results", epochs=120)
    found = read(tmp_path / "results")
    paths = figures.save(found, tmp_path / "figures")
    assert len(paths) == 14
    for path in paths:
        assert Path(path).stat().st_size < 150_000, path


def test_catalogue_needs_no_matplotlib():
    code = (
        "import sys; from fbeta_reproduction import figures\n"
        "from fbeta_reproduction.write_up import contents\n"
        "from fbeta_reproduction.results.folder import Results\n"
        "contents.document(Results(())); print('matplotlib' in sys.modules, 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "False"]
