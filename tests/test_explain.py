"""`fbeta explain`: its numbers against formulas written here, its faces, its exit codes."""

import html
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from scipy.special import ndtr

import fbeta
from catalogue import METRICS
from fbeta import (
    MCC,
    Accuracy,
    BalancedAccuracy,
    Confusion,
    Cost,
    FBeta,
    FowlkesMallows,
    GMean,
    Jaccard,
    Kappa,
    Metric,
    metric,
)
from fbeta.decisions.steps import score_cells
from fbeta.report import console, png
from fbeta.report.explain import Explanation, charts, explain, printout
from fbeta.report.explain.charts import figure_1, page, term
from fbeta.report.explain.population import SEPARATIONS, point, population, rates, roc
from fbeta.report.level_lines import level_lines

PREVALENCES = [1e-4, 0.1, 0.5, 0.9]
HOSTILE = "<img src=x onerror=alert(1)>[red]$x$</script>\x1b[31m"


def hostile():
    """A user's function whose name tries everything at once."""

    def score(tp, fp, fn, tn):
        return tp / (tp + fp + fn)  # 0/0 in a corner, on top of it

    score.__name__ = HOSTILE
    return score


def printed(e, width=80):
    written = Console(file=io.StringIO(), width=width)
    console.show(printout.layout(e), written)
    return written.file.getvalue()


# The data


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("prevalence", PREVALENCES)
def test_numbers_of_f_beta(beta, prevalence):
    e = explain(FBeta(beta), prevalence)
    a = beta**2 * prevalence / (1 - prevalence)
    assert e.kind == "pencil"
    assert e.pole == e.anchors == pytest.approx((-a, 0))
    assert e.rule.fit == pytest.approx((0, 1 / (1 + beta**2), 0))
    for p in e.points:
        assert p.delta == pytest.approx(p.score / (1 + beta**2))
    for p in e.populations:
        assert p.cut == pytest.approx(p.best.score / (1 + beta**2), rel=1e-6)
    best = e.populations[1].best
    own, bce, mae = e.conditions
    # −q₀′/(1 − q₀) = q₁′/(a + q₁) along the ROC curve, where t = 1 − q₀ and u = q₁
    assert own.slope == pytest.approx(best.tpr / (a + best.fpr))
    assert bce.slope == pytest.approx(best.tpr / (1 - best.fpr))
    assert mae.slope == 1
    assert f"{a:.4g} + q₁" in own.numbers.replace("−0", "-0") or "e" in own.numbers


def test_the_condition_is_that_of_the_roc_curve_at_the_best_point():
    """dt/du of two normal classes is exp(d′s − d′²/2), and η gives s: another way to the same slope."""
    for m in (FBeta(2), MCC(), Kappa(), Cost(fp=1, fn=20), GMean()):
        e = explain(m, 0.1)
        cut = e.populations[1].cut
        odds = cut / (1 - cut) * 0.9 / 0.1
        assert e.conditions[0].slope == pytest.approx(odds, rel=1e-6), m


@pytest.mark.parametrize(
    ("m", "fit"),
    [
        (Jaccard(), (0, 1, 1)),  # J/(1 + J)
        (Kappa(), (0.3, 0.2, 0)),  # π + κ(½ − π)
        (BalancedAccuracy(), (0.3, 0, 0)),
        (Accuracy(), (0.5, 0, 0)),
        (Cost(fp=1, fn=20), (1 / 21, 0, 0)),
        (Cost(fp=2, fn=20, tp=-1), (2 / 23, 0, 0)),
    ],
    ids=str,
)
def test_rules(m, fit):
    assert explain(m, 0.3).rule.fit == pytest.approx(fit, abs=1e-9)


def test_metrics_without_a_rule_in_the_score():
    for m in (MCC(), FowlkesMallows(), GMean()):
        assert explain(m, 0.1).rule.fit is None
    for p in explain(FowlkesMallows(), 0.1).points:  # half the precision
        assert p.delta == pytest.approx(0.5 * 0.1 * p.tpr / (0.1 * p.tpr + 0.9 * p.fpr))


def test_kinds_and_poles():
    c = -0.3 / 0.4
    assert explain(Kappa(), 0.3).pole == pytest.approx((c, c))
    assert explain(Kappa(), 0.3).conditions[0].numbers == "−q₀′/(1.75 − q₀) = q₁′/(0.75 + q₁)"
    assert explain(Kappa(), 0.7).conditions[0].numbers == "−q₀′/(0.75 + q₀) = q₁′/(1.75 − q₁)"
    assert explain(Accuracy(), 0.2).slope == pytest.approx(4)
    assert explain(Accuracy(), 0.2).conditions[0].numbers == "−q₀′ = 4·q₁′"
    assert explain(GMean(), 0.1).conditions[0].numbers == explain(GMean(), 0.1).conditions[1].numbers
    kinds = {str(m): explain(m, 0.1).kind for m in METRICS}
    assert kinds["mcc"] == kinds["fowlkesmallows"] == "curved"
    assert kinds["gmean"] == "separable"
    assert kinds["recall"] == kinds["specificity"] == "one-sided"
    assert kinds["cost:fp=1,fn=20,tp=0,tn=0"] == "parallel"


@pytest.mark.parametrize("m", [FBeta(0.5), FBeta(2), Kappa(), MCC(), GMean(), Cost(fp=1, fn=20)], ids=str)
@pytest.mark.parametrize("prevalence", [0.01, 0.1, 0.9])
@pytest.mark.parametrize("d", SEPARATIONS)
def test_the_best_cut_is_the_best_of_all_cuts(m, prevalence, d):
    p = population(m, prevalence, d)
    normal = NormalDist()
    s = np.linspace(-8, 8 + d, 40_001)
    scores = m(Confusion.from_rates(ndtr(-s), ndtr(d - s), prevalence))
    assert p.best.score == pytest.approx(scores.max(), rel=1e-6)
    assert p.best.score >= scores.max() - 1e-12
    assert p.auc == pytest.approx(normal.cdf(d / math.sqrt(2)))
    at = (math.log((1 - prevalence) / prevalence) + d * d / 2) / d  # where η = ½
    assert (p.half.fpr, p.half.tpr) == pytest.approx((1 - normal.cdf(at), 1 - normal.cdf(at - d)), abs=1e-12)
    assert p.lost == pytest.approx(p.best.score - p.half.score)


def test_two_normal_classes():
    assert rates(1.0, separation=2.0) == pytest.approx((0.1587, 0.8413), abs=5e-5)
    assert [t for _, t in roc(2.0, n=3)] == pytest.approx([0.0, 0.8413, 1.0], abs=5e-5)
    p = point(FBeta(2), fpr=0.1, tpr=0.8, prevalence=0.1)
    assert (p.score, p.delta) == pytest.approx((0.7018, 0.1404), abs=5e-5)
    p = population(FBeta(1), prevalence=0.1, separation=2.0)
    assert (p.auc, p.cut, p.best.score / 2) == pytest.approx((0.9214, 0.3061, 0.3061), abs=5e-5)


def test_words_about_one_half():
    assert "right cut" in explain(Accuracy(), 0.1).half
    assert "right cut" in explain(Kappa(), 0.5).half
    assert "too high" in explain(FBeta(2), 0.1).half
    assert "too low" in explain(BalancedAccuracy(), 0.9).half
    assert "too high or too low" in explain(FBeta(0.5), 0.1).half


def test_formulas():
    assert explain("fbeta:beta=2", 0.1).numbers == "5·TP / (5·TP + FP + 4·FN)"
    assert explain("cost:fp=1,fn=20", 0.1).numbers == "−(FP + 20·FN) / n"
    assert explain("cost:fp=2,fn=20,tp=-1", 0.1).numbers == "(TP − 2·FP − 20·FN) / n"
    for name, cls in Metric.registry.items():
        if cls.__module__.startswith("fbeta."):
            assert cls.formula, name


@pytest.mark.parametrize("name", [n for n, c in Metric.registry.items() if c.__module__.startswith("fbeta.")])
@pytest.mark.parametrize(
    "prevalence", [0.1, *(pytest.param(p, marks=pytest.mark.slow) for p in PREVALENCES if p != 0.1)]
)
def test_every_metric_is_explained(name, prevalence):
    e = explain(name, prevalence)
    assert Explanation.from_json(e.to_json()) == e
    text = printed(e)
    assert e.spec in text
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"\b(nan|inf|None)\b", text)
    a, b = figure_1(e)
    for curve in a + b:
        assert curve.y[0] == 0
        assert np.isfinite(curve.y).all()
        assert (np.diff(curve.y) >= 0).all()
    lines = level_lines(e.metric, prevalence)
    assert len(lines) >= 5
    for line in lines:
        x, y = np.array(line.points).T
        inner = (x > 0.02) & (x < 0.98) & (y > 0.02)
        found = score_cells(e.metric, Confusion.from_rates(x[inner], y[inner], prevalence))
        assert found == pytest.approx(line.score, rel=1e-6, abs=1e-6)


def test_own_formula_as_class_and_as_function():
    def own(tp, fp, fn, tn):
        """Root of precision times recall."""
        return math.sqrt(tp / (tp + fp) * tp / (tp + fn))

    e, same = explain(own, 0.1), explain(FowlkesMallows(), 0.1)
    assert e.about == "Root of precision times recall."
    assert e.formula == ""
    assert e.populations[1].cut == pytest.approx(same.populations[1].cut, rel=1e-3)
    assert "your own function" in printed(e)
    assert len(charts.figure(e).axes) == 3


def test_refused_metrics_say_why():
    for name in ("precision", "recall", "specificity"):
        e = explain(name, 0.1)
        assert not e.trainable
        assert e.training[0].why == metric(name).refusal(0.1)
    e = explain("mcc", 0.1)
    assert [t.possible for t in e.training] == [True, True, False]
    assert "no anchors" in e.training[2].why


# The pictures


def test_figure_1_is_the_papers():
    a, b = figure_1(explain("fbeta:beta=1", 0.5))
    q = a[0].x
    bce = -np.log1p(-q)
    for curve, expected in zip(a, (bce, q, bce), strict=True):
        assert curve.y == pytest.approx(expected)
    named = [c for c in b if c.role != "sibling"]
    for curve, expected in zip(named, (bce, q, np.log1p(q)), strict=True):
        assert curve.y == pytest.approx(expected)
    assert [c.label for c in named] == ["BCE  −log(1 − q)", "MAE  q", "surrogate  log(1 + q)"]
    assert [c.label for c in b if c.role == "sibling"] == ["β = ½", "β = 2", "β = 3"]
    assert term(-1.0, np.array([0.0, 1.0]), positive=False) == pytest.approx([0, math.log(2)])


def test_charts_have_legends_and_titles():
    legend = [key.label for key in charts.roc_space(explain("mcc", 0.1)).legend]
    assert legend == ["AUC 0.76", "AUC 0.92", "AUC 0.98", "best cut", "cut at ½"]
    panels = charts.loss_panels(explain("kappa", 0.3))
    assert [chart.label for chart in panels] == ["Cost of false negatives", "Cost of false positives"]
    assert [chart.y for chart in panels] == [(0, 1.6), (0, 1.6)]


@pytest.mark.parametrize("m", [FBeta(2), Kappa(), GMean(), Cost(fp=1, fn=20)], ids=str)
@pytest.mark.parametrize("prevalence", [0.1, 0.45, 0.9])
def test_curves_are_those_of_the_surrogate_loss(m, prevalence):
    torch = pytest.importorskip("torch")
    from fbeta.losses.surrogate import surrogate_loss

    a, b = figure_1(explain(m, prevalence))
    for curves, target in ((a, 1.0), (b, 0.0)):
        own = next(c for c in curves if c.role == "own")
        inside = (own.x > 1e-3) & (own.x < 0.999)
        f = torch.tensor(1 - own.x[inside] if target else own.x[inside])
        value = surrogate_loss(torch.logit(f), torch.full_like(f, target), m.anchors(prevalence)).numpy()
        assert np.diff(value) == pytest.approx(np.diff(own.y[inside]), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "spec", ["fbeta:beta=2", "recall", *(pytest.param(x, marks=pytest.mark.slow) for x in ("kappa", "mcc", "gmean"))]
)
def test_png_is_a_picture(spec, tmp_path):
    path = tmp_path / "x.png"
    png.save(charts.figure(explain(spec, 0.1)), path)
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert image.size[0] > 1000
        assert len(set(image.convert("L").resize((200, 120)).tobytes())) > 50
    first = path.read_bytes()
    png.save(charts.figure(explain(spec, 0.1)), path)
    assert path.read_bytes() == first


def test_page_loads_nothing_from_elsewhere():
    text = page(explain("fbeta:beta=2", 0.1))
    assert "default-src 'none'" in html.unescape(text)
    assert not re.search(
        r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)\s*=\s*(?!\"data:)",
        re.sub(r"(?s)<script>.*?</script>", "", text),
    )
    assert not re.search(r"<script[^>]+src", text)
    assert text.count('<svg class="chart"') == 3
    assert len(text.encode()) < 300_000


def test_a_hostile_name_stays_text(tmp_path):
    e = explain(hostile(), 0.1)
    assert "\x1b" not in e.spec
    text = page(e)
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "[red]$x$</script>" in printed(e, width=120)
    assert "\x1b[31m" not in printed(e, width=120)
    png.save(charts.figure(e), tmp_path / "x.png")
    assert json.loads(e.to_json())["metric"] == e.spec


# The command


def command(*words):
    done = subprocess.run([Path(sys.executable).parent / "fbeta", *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_command_says_it_all():
    code, out, err = command("explain", "--metric", "fbeta:beta=2", "--prevalence", "0.1")
    assert (code, err) == (0, "")
    for words in ("(−0.4444, 0)", "δ = M*/5", "q₁′/(0.4444 + q₁)", "q₁′/(1 − q₁)", "−q₀′ = q₁′", "too high"):
        assert words in out, words
    assert "no anchors" in command("explain", "--metric", "mcc")[1]
    assert command("--version")[1].strip() == fbeta.__version__


def test_command_writes_files_and_json(tmp_path):
    image, text = tmp_path / "x.png", tmp_path / "x.html"
    code, out, _ = command("explain", "--metric", "kappa", "--png", str(image), "--html", str(text), "--json")
    assert code == 0
    assert Explanation.from_json(out) == explain("kappa", 0.1)
    assert image.stat().st_size > 20_000
    assert text.read_text(encoding="utf-8").endswith("</html>")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--metric", "nonsense"], "Choices: accuracy"),
        (["--metric", "fbeta:beta=-1"], "beta must be"),
        (["--prevalence", "1.5"], "between 0 and 1"),
        (["--png", "/no/such/folder/x.png"], "cannot write /no/such/folder/x.png"),
        (["--html", "/"], "cannot write /"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence):
    code, out, err = command("explain", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "module", "extra"),
    [("--png", "matplotlib", "plot"), ("--html", "jinja2", "report"), ("--html", "markupsafe", "report")],
)
def test_a_missing_extra_is_named(flag, module, extra, tmp_path):
    words = ["fbeta", "explain", flag, str(tmp_path / "x")]
    code = f"import sys; sys.modules[{module!r}] = None; sys.argv = {words}\nfrom fbeta.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"pip install 'fbeta[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_explaining_needs_neither_torch_nor_numpy():
    code = "import sys, fbeta.report.explain as f; f.explain('mcc', 0.1); print({'torch', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
