"""The report of a comparison: what the page and the terminal say. `test_report_browser.py` looks at the page."""

import json
import math
import re
import threading
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from io import StringIO

import pytest
from rich.console import Console

import fbeta
from fbeta import numerals, report
from fbeta.comparison.result import Comparison, Estimate, Operating, TableFacts
from fbeta.report import advice, comparison_printout, console, level_lines, method_rows, shell
from fbeta.report.chart import Chart, Key, Line, ticks, window
from fbeta.report.comparison_charts import slider
from fbeta.report.console import bar, progress
from fbeta.report.svg import sample, svg
from made_up_comparison import METHODS, comparison

NASTY = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "' onload='alert(1)", '"><svg onload=1>')


class Reader(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.said = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.said.append(data)


@pytest.fixture(scope="module")
def made():
    return comparison()


@pytest.fixture(scope="module")
def page(made):
    return report.page(made)


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def test_every_method_and_number_is_there(made, page):
    said = " ".join(Reader(page).said)
    for c in made.candidates:
        assert said.count(c.name) >= 3  # table, choice, legend
        for x in (c.score.mean, c.score.low, c.score.high, c.at_half.mean):
            assert numerals.fixed(x) in said
        assert numerals.short(c.brier, 3, zeros=True) in said
        if c.difference:
            assert numerals.signed(c.difference.mean) in said
            assert numerals.p_value(c.difference.p) in said
    for text in (made.recommendation, made.title, *made.table.notes, "corrected resampled t-test", "2 min 17 s"):
        assert text in said
    assert "calls everything positive since epoch 1 (in 3 of 5 splits)" in said
    assert "5 outer splits and 5 inner folds" in said


def test_page_is_one_small_file_that_fetches_nothing(page):
    assert len(page.encode()) < 300_000
    assert "http" not in page.replace("http-equiv", "")
    for tag, attributes in Reader(page).elements:
        assert tag not in ("img", "iframe", "object", "base")
        for name in ("src", "href", "action", "srcset", "style"):
            assert attributes.get(name) in (None, "data:,"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|eval\(|innerHTML", page)


@pytest.mark.parametrize("nasty", NASTY)
def test_names_from_the_data_are_escaped(made, page, nasty):
    names = [f"{nasty}{i}" for i in range(len(METHODS))]
    hostile = comparison(table=nasty, target=nasty, note=nasty, remark=nasty, title=nasty, names=names)
    tests = [replace(c, difference=c.difference and replace(c.difference, test=nasty)) for c in hostile.candidates]
    hostile = replace(hostile, machine=nasty, recommendation=nasty, candidates=tuple(tests))
    hostile = replace(hostile, table=replace(hostile.table, positive=nasty))
    bad = report.page(hostile)
    reader = Reader(bad)
    assert [tag for tag, _ in reader.elements if tag == "script"] == ["script"] * 2
    # The same elements with the same attributes as on a page without malice, bar the method with the remark.
    shape = [(tag, sorted(a)) for tag, a in reader.elements]
    assert shape == [(tag, sorted(a)) for tag, a in Reader(page).elements]
    assert " ".join(reader.said).count(nasty) > 20
    assert [m["name"] for m in embedded(bad)["methods"].values()] == names


def test_control_characters_do_not_reach_the_page():
    text = report.page(replace(comparison(seeds=2), recommendation="a\x00b\u202ec\ud800"))
    assert "a�b�c�" in text
    text.encode()


def test_the_browser_may_run_our_script_alone(page):
    policy = next(a["content"] for tag, a in Reader(page).elements if a.get("http-equiv"))
    assert re.fullmatch(
        r"default-src 'none'; img-src data:; script-src 'sha256-\S{44}'; style-src 'sha256-\S{44}'", policy
    )


def test_embedded_counts_and_scores_are_pythons(made, page):
    metric = fbeta.metric(made.metric)
    methods = embedded(page)["methods"]
    assert len(methods) == len(made.candidates)
    for i, c in enumerate(made.candidates):
        m = methods[str(i)]
        exact = dict(
            zip(map(numerals.cut, c.operating.cut), zip(c.operating.tp, c.operating.fp, strict=True), strict=True)
        )
        exact["none"] = (0.0, 0.0)
        assert len(m["cut"]) == len(m["tp"]) == len(m["fp"]) == len(m["score"]) > 100
        for cut, tp, fp, score in zip(m["cut"], m["tp"], m["fp"], m["score"], strict=True):
            assert (tp, fp) == exact[cut]
            cells = fbeta.Confusion(tp, fp, c.operating.positives - tp, c.operating.negatives - fp)
            assert f"{score:.3f}" == f"{metric(cells):.3f}"


def test_own_cut_and_half_are_places_of_the_slider(made):
    own = fbeta.metric(made.metric)
    c = made.candidates[3]
    found = slider(method_rows.method_rows(made)[3], own, most=50)
    assert len(found.cut) < 80
    assert found.tp[found.half] == max(
        tp for cut, tp in zip(c.operating.cut, c.operating.tp, strict=True) if cut >= 0.5
    )
    assert found.fp[0] == c.operating.negatives
    assert found.cut[-1] == math.inf
    assert list(found.cut) == sorted(found.cut)


@pytest.mark.parametrize("spec", ["fbeta:beta=1", "mcc", "kappa", "gmean", "cost:fp=1,fn=20", "precision", "recall"])
def test_level_lines_have_one_score(spec):
    metric = fbeta.metric(spec)
    for right in (1.0, 0.05):
        lines = level_lines.level_lines(metric, 0.1, right)
        assert len(lines) >= 3
        for line in lines:
            for u, t in line.points[1:-1]:
                if u + t > 1e-6:
                    assert metric(fbeta.Confusion.from_rates(u, t, 0.1)) == pytest.approx(line.score, abs=1e-6)
            assert all(
                a[0] <= b[0] + 1e-9 and a[1] <= b[1] + 1e-9 for a, b in zip(line.points, line.points[1:], strict=False)
            )


def test_level_lines_have_round_scores_and_say_them():
    assert [line.score for line in level_lines.level_lines(fbeta.Accuracy(), 0.5, n=4)] == [0.9, 0.6, 0.4, 0.1]
    assert {round(t, 6) for _, t in level_lines.level_line(fbeta.Recall(), 0.1, 0.3).points} == {0.3}
    chart = Chart("F₂", (0, 1), (0, 1))
    level_lines.add(chart, level_lines.level_lines(fbeta.FBeta(2), prevalence=0.1))
    labels = ["0.9", "0.7", "0.5", "0.4", "0.3", "0.2", "0.1", "0.07", "0.02"]
    assert [label.text for label in chart.labels] == labels


def test_a_metric_of_ones_own():
    def rings(tp, fp, fn, tn):
        return tp / (tp + 0.5 * fp + fn)

    own = replace(comparison(seeds=2), metric="rings", title="rings")
    with pytest.raises(ValueError, match="Unknown metric 'rings'.*report.page"):
        report.page(own)
    found = embedded(report.page(own, metric=rings))["methods"]["0"]
    at = len(found["tp"]) // 2
    tp, fp = found["tp"][at], found["fp"][at]
    assert found["score"][at] == round(rings(tp, fp, found["positives"] - tp, 0), 3)


def test_degenerate_comparisons_have_a_page():
    nothing = Comparison(TableFacts("t", "y", "1", 0, 0, 0), "mcc", "MCC", (), "", "", "Nothing was run.")
    assert "Nothing was run." in report.page(nothing)
    bare = comparison(seeds=1)
    hollow = [
        replace(
            c,
            outcomes=(),
            score=Estimate(math.nan, math.nan, math.nan),
            operating=Operating((), (), (), 0.0, 0.0),
            calibration=type(c.calibration)((), (), ()),
        )
        for c in bare.candidates
    ]
    for candidates in (hollow, [*bare.candidates[:1], hollow[1]]):
        text = report.page(replace(bare, candidates=tuple(candidates), winner=""))
        assert text.endswith("</html>")
        assert not re.search(r'(d|x|y|cx|transform)="[^"]*(nan|inf)', text)
        Console(width=100, file=StringIO()).print(report.terminal(replace(bare, candidates=tuple(candidates))))


def test_a_page_of_json_is_the_same_page(made, page):
    assert report.page(Comparison.from_json(made.to_json())) == page


def test_a_page_escapes_what_is_not_markup():
    nasty = NASTY[0] + "\x00"
    body = shell.fill("<p>{{ name }}</p>", name=nasty)
    for text in (shell.page(nasty, body, footer=nasty, data={"name": nasty}), shell.page(nasty, nasty)):
        reader = Reader(text)
        assert "alert(1)\x00" not in text
        assert [tag for tag, _ in reader.elements].count("script") == 1 + ('id="data"' in text)
        assert "".join(reader.said).count("<script>alert(1)</script>�") >= 2


def test_files_of_the_page_are_in_the_package():
    needed = {"page.html", "page.css", "page.js", "comparison.html", "comparison.js", "explanation.html"}
    assert needed <= {file.name for file in files("fbeta.report").iterdir()}


def test_write_leaves_nothing_half_written(made, page, tmp_path):
    report.write(made, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    with pytest.raises(OSError, match="missing"):
        report.write(made, tmp_path / "missing" / "page.html")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("width", [80, 100])
def test_terminal_fits(made, width):
    long, short = (printed(report.terminal(made, methods=methods), width) for methods in (True, False))
    for text in (long, short):
        assert max(map(len, text.splitlines())) <= width
        assert "★" in text
        assert "…" not in text
    for c in made.candidates:
        line = next(line for line in long.splitlines() if re.match(rf"{c.name}( ★)? +{c.score.mean:.3f} ", line))
        assert numerals.between(c.score.low, c.score.high) in line  # the ends beside the bar
        assert not re.search(rf"^{c.name}( ★)? +{c.score.mean:.3f}", short, re.M)
    for step in made.steps:
        assert f"{step.score.mean:.3f}" in short
    assert numerals.between(0.05, 0.11, sign=True) in short
    # Losses are compared within a model: a line for each, with a score for each model that has it.
    tangent = next(line for line in short.splitlines() if line.startswith("tangent "))
    scores = [made.candidates[at].score.mean for at in (1, 3)]
    assert tangent.replace("★", " ").split() == ["tangent", f"{scores[0]:.3f}", "▲", f"{scores[1]:.3f}", "▲", "–"]
    assert made.table.notes[0] not in short  # said when the table was read


def printed(layout, width=100):
    console = Console(width=width, record=True, file=StringIO())
    console.print(layout)
    return console.export_text()


@pytest.mark.parametrize("width", [80, 100])
def test_what_comes_first(made, page, width):
    """What is found and flagged, what to take, how sure; in the terminal and on the page."""
    first = advice.advice(made)
    c = method_rows.method_rows(made)[3].pooled
    caught, flagged = round(100 * c.tpr), round(100 * c.predicted)
    assert first.found == (
        f"Catches {caught} of 100 rows with is_fraud = 1 and flags {flagged} of 100 rows "
        "(at the usual probability ½: 42 and 8)."
    )
    assert first.take.startswith("Take “tangent, mlp”, and call a row positive from a probability of about 0.")
    assert first.sure.endswith("the score F₂ changes by +0.110 (+0.070 to +0.150): a reliable gain.")
    text = " ".join(printed(report.terminal(made), width).split())
    said = " ".join(Reader(page).said)
    for sentence in first:
        assert sentence in text
        assert sentence in said
    assert text.index(first.found) < text.index("+ its best cut") < text.index("0.610") < text.index("surrogate")
    assert said.index(first.sure) < said.index("+ its best loss: none better") < said.index("false positive rate")
    silent = replace(made, verdict="no signal", advised="", gain=None)
    nothing = "No signal: nothing here is reliably better than calling all rows positive."
    assert advice.advice(silent).found == nothing
    assert "so none is advised" in report.page(silent)
    assert not any(advice.advice(replace(made, advised="")))
    assert silent.recommendation in " ".join(printed(report.terminal(silent)).split())


def test_rates_are_of_as_many_as_show_them():
    now, then = fbeta.Confusion(20, 30, 30, 19920), fbeta.Confusion(10, 2, 40, 19948)
    assert advice.rates(now) == ("40 of 100", "25 of 10,000", "40 of 100")
    assert advice.rates(now, then)[1] == "25 of 10,000"
    assert advice.rates(fbeta.Confusion(0, 0, 50, 950)) == ("0 of 100", "0 of 100", "– of 100")
    steps = comparison(seeds=1).steps
    assert [flagged for _, flagged in advice.step_rates(steps)] == ["8 of 100", *["20 of 100"] * 3]
    words = {"worse": "reliably a loss", "equivalent": "no gain that matters", "undecided": "could be chance"}
    for word, said in words.items():
        found = comparison(seeds=1)
        assert said in advice.advice(replace(found, gain=replace(found.gain, word=word))).sure


def test_terminal_shows_markup_as_text():
    text = printed(report.terminal(comparison(table="[red]a[/red]", names=["[b]x[/b]"] * 6, seeds=2), methods=True))
    assert "[red]a[/red]" in text
    assert "[b]x[/b]" in text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (numerals.fixed(-0.12345), "−0.123"),
        (numerals.fixed(-0.0001), "0.000"),
        (numerals.fixed(math.nan), "–"),
        (numerals.fixed(12345.6, 1), "12,345.6"),
        (numerals.signed(0.0123), "+0.012"),
        (numerals.signed(-0.0123), "−0.012"),
        (numerals.signed(0.0), "0.000"),
        (numerals.between(0.1, 0.25), "0.100 to 0.250"),
        (numerals.between(-0.1, 0.25, 2, sign=True), "−0.10 to +0.25"),
        (numerals.short(-4 / 9), "−0.4444"),
        (numerals.short(20.0), "20"),
        (numerals.short(0.01, 2, zeros=True), "0.010"),
        (numerals.short(None), "–"),
        (numerals.cut(0.25), "0.25"),
        (numerals.cut(1 / 3), "0.333333"),
        (numerals.cut(math.inf), "none"),
        (numerals.p_value(0.0004), "< 0.001"),
        (numerals.p_value(0.012), "0.012"),
        (numerals.p_value(0.34), "0.34"),
        (numerals.percent(0.0123), "1.23 %"),
        (numerals.percent(math.nan), "–"),
        (numerals.count(12345.0), "12,345"),
        (numerals.count(2.5), "2.5"),
        (numerals.series(["a", "b", "c"]), "a, b and c"),
        (numerals.series(["a", "b"]), "a and b"),
        (numerals.series(["a"]), "a"),
        (numerals.series([]), ""),
        (
            numerals.cells(fbeta.Confusion(tp=39, fp=1, fn=0, tn=1129)),
            "39 true positives, 0 false negatives, 1 false positive, 1,129 true negatives",
        ),
        (numerals.duration(0.42), "0.42 s"),
        (numerals.duration(12.3), "12 s"),
        (numerals.duration(200), "3 min 20 s"),
        (numerals.duration(7500), "2 h 5 min"),
        (numerals.clean("a\x00b\u202ec"), "a�b�c"),
        (numerals.clean("ä <b>"), "ä <b>"),
    ],
)
def test_numbers_and_names_as_text(said, text):
    assert said == text


@pytest.mark.parametrize(("score", "at_half", "digits"), [(0.81, 0.7, 3), (-0.0021, -0.0019, 5), (-250.0, 0.0, 1)])
def test_decimals_suit_the_size_of_the_scores(made, score, at_half, digits):
    one = replace(made.candidates[0], score=Estimate(score, 0, 0), at_half=Estimate(at_half, 0, 0))
    assert method_rows.digits(method_rows.method_rows(replace(made, candidates=(one,)))) == digits


def test_what_the_terminal_draws():
    assert comparison_printout.bar(Estimate(0.5, 0.0, 1.0), (0.0, 1.0), 9).plain == "├───●───┤"
    written = Console(width=100, file=StringIO())
    console.show(console.heading("Title", "a note"), written)
    assert written.file.getvalue() == "Title  a note\n"
    assert console.plain("[b]a").plain == "[b]a"


def test_a_bar_counts_and_stays_out_of_files(capsys):
    assert len(bar("epochs", Console(quiet=True)).columns) == 7
    threads = threading.active_count()
    with progress("training", "epochs") as tick:
        tick(1, 10)
    assert capsys.readouterr().err == ""
    assert threading.active_count() == threads


def test_a_chart_has_places_on_paper():
    chart = Chart("a line", (0, 1), (0, 1), margins=(0, 0, 0, 0))
    chart.lines.append(Line([(0, 0), (1, 1)], "s c0", title="1 < 2"))
    assert chart.at((0.5, 1.0)) == (180.0, 0.0)
    assert "<title>1 &lt; 2</title>" in svg(chart)
    assert sample(Key("a", line="s c0")).count("<path") == 1
    assert window([1.0, 2.0], 0.5) == (0.5, 2.5)


def test_ticks_are_round():
    assert ticks(0, 1) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(1, 20) == [5.0, 10.0, 15.0, 20.0]
    assert ticks(0.0, 0.02) == [0.0, 0.005, 0.01, 0.015, 0.02]
    assert ticks(-0.31, 0.11) == [-0.3, -0.2, -0.1, 0.0, 0.1]


def test_numbers_at_an_axis_are_where_they_say():
    drawn = svg(Chart("narrow", (0, 1), (0.8420, 0.8535), "epoch", "F₁ on held-out rows"))
    for value in ticks(0.8420, 0.8535):
        assert f">{value:g}</text>" in drawn
    # A digit is about 6.4 wide, and the name of the axis ends at 13.
    ends = [float(x) for x in re.findall(r'class="end" x="([\d.]+)"', drawn)]
    assert min(ends) - 6.4 * len("0.8525") > 13
