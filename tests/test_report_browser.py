"""Pages in a real browser: what people see and press."""

from dataclasses import replace

import pytest

import fbeta
from fbeta import report
from fbeta.numerals import count, fixed, percent
from fbeta.report import shell
from fbeta.report.explain import explain
from fbeta.report.explain.charts import page
from made_up_comparison import comparison

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def made():
    return comparison()


@pytest.fixture(scope="module")
def file(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    report.write(made, path)
    return path


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    """The page of `fbeta explain`."""
    path = tmp_path_factory.mktemp("explain") / "page.html"
    shell.write(page(explain("fbeta:beta=2", prevalence=0.1)), path)
    return path


@pytest.fixture(params=["comparison", "explanation"])
def either(request, file, explained):
    """What holds for every page."""
    return file if request.param == "comparison" else explained


def shown(page, name):
    return page.locator(f'[data-n="{name}"]').inner_text()


def unfold(page):
    page.click("#details > summary")


def set_slider(page, at):
    page.locator("#cut").evaluate("(x, at) => { x.value = at; x.dispatchEvent(new Event('input')); }", at)


def test_slider_says_what_python_says(visit, file, made):
    page = visit(file)
    metric = fbeta.metric(made.metric)
    page.fill("#fp-cost", "2.5")
    page.fill("#fn-cost", "40")
    for index in (0, 3, 4):
        c = made.candidates[index]
        o = c.operating
        page.select_option("#method", str(index))
        last = int(page.get_attribute("#cut", "max"))
        known = page.evaluate("(i) => JSON.parse(document.getElementById('data').textContent).methods[i]", str(index))
        for at in (0, 1, last // 3, last // 2, last - 1, last):
            set_slider(page, at)
            # From the rows of the comparison, found by the cut that the page shows.
            cut = page.inner_text("#at").removeprefix("score ")
            i = next((i for i, x in enumerate(o.cut) if f"{x:.6g}" == cut), None)
            tp, fp = (o.tp[i], o.fp[i]) if i is not None else (0, 0)
            assert (i is None) == (cut == "no score") == (at == last)
            assert (tp, fp) == (known["tp"][at], known["fp"][at])
            cells = fbeta.Confusion(tp, fp, o.positives - tp, o.negatives - fp)
            for name in ("tp", "fp", "fn", "tn"):
                assert shown(page, name) == count(getattr(cells, name))
            assert shown(page, "score") == f"{metric(cells):.3f}"
            assert shown(page, "precision") == (f"{tp / (tp + fp):.3f}" if tp + fp else "–")
            assert shown(page, "recall") == f"{cells.tpr:.3f}"
            assert shown(page, "alerts") == percent(cells.predicted)
            cost = 2.5 * fp + 40 * cells.fn
            assert shown(page, "cost") == fixed(cost, 0 if cost == int(cost) else 2)
            assert shown(page, "cost-row") == fixed(cost / cells.total, 4)
            for kind, x, y in (("roc", cells.fpr, cells.tpr), ("pr", cells.tpr, fbeta.Precision()(cells))):
                mark = page.locator(f'svg[data-live="{kind}"] .live').first
                if kind == "pr" and not tp + fp:
                    assert mark.get_attribute("hidden") is not None
                else:  # the frame is 22 and 38 from top and bottom, 46 and 32 from left and right of 360 × 300
                    where = f"translate({46 + 282 * x:.2f} {22 + 240 * (1 - y):.2f})"
                    numbers = [float(v) for v in mark.get_attribute("transform")[10:-1].split()]
                    assert numbers == pytest.approx([float(v) for v in where[10:-1].split()], abs=0.011)


def test_numbers_are_rounded_as_python_rounds(visit, tmp_path):
    made = comparison(seeds=2)
    c = made.candidates[0]
    # Precision 1/16 = 0.0625 and share 1/32 = 3.125 % lie halfway between two numbers that can be shown.
    halves = type(c.operating)((0.9, 0.1), (1.0, 8.0), (15.0, 504.0), 8.0, 504.0)
    first = replace(c, operating=halves)
    report.write(replace(made, candidates=(first, *made.candidates[1:])), tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    page.select_option("#method", "0")
    set_slider(page, 1)
    assert (shown(page, "precision"), shown(page, "alerts")) == (f"{1 / 16:.3f}", f"{100 * 16 / 512:.2f} %")
    assert (shown(page, "precision"), shown(page, "alerts")) == ("0.062", "3.12 %")


def test_the_cut_moves_by_keyboard(visit, file, made):
    page = visit(file)
    page.focus("#cut")
    before, tp = page.input_value("#cut"), shown(page, "tp")
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    assert int(page.input_value("#cut")) == int(before) + 30
    assert int(shown(page, "tp")) < int(tp)
    page.keyboard.press("Home")
    assert shown(page, "recall") == "1.000"
    assert shown(page, "tn") == "0"
    assert "F₂" in page.get_attribute("#cut", "aria-valuetext")
    page.keyboard.press("End")
    assert shown(page, "alerts") == "0.00 %"
    page.focus('[data-jump="half"]')
    page.keyboard.press("Enter")
    winner = made.candidate(made.winner).operating
    at_half = max(tp for cut, tp in zip(winner.cut, winner.tp, strict=True) if cut >= 0.5)
    assert shown(page, "tp") == count(at_half)


def test_cheapest_cut_is_the_cheapest(visit, file, made):
    page = visit(file)
    page.fill("#fp-cost", "1")
    page.fill("#fn-cost", "3")
    page.click('[data-jump="cheap"]')
    cost = float(shown(page, "cost").replace(",", ""))
    o = made.candidate(made.winner).operating
    best = min(fp + 3 * (o.positives - tp) for tp, fp in zip(o.tp, o.fp, strict=True))
    assert best <= cost <= 1.01 * best  # a slider has not every cut


def test_the_page_begins_with_the_decisions_that_were_scored(visit, file, made):
    """Each split's with its own cut, until the slider moves."""
    page = visit(file)
    own = made.candidate(made.advised)

    def scored():
        counts = {name: sum(getattr(o, name) for o in own.outcomes) for name in ("tp", "fp", "fn", "tn")}
        return all(shown(page, name) == count(n) for name, n in counts.items())

    assert scored()
    assert page.inner_text("#at").startswith("each split’s own cut (0.")
    page.click('[data-jump="half"]')
    assert not scored()
    assert page.inner_text("#at").startswith("score 0.5")
    page.click('[data-jump="own"]')
    assert scored()


@pytest.mark.parametrize("bad", ["-1", "", "1e999"])
def test_a_cost_that_is_none_is_answered(visit, file, bad):
    page = visit(file)
    assert not page.locator("#cost-note").is_visible()
    page.fill("#fp-cost", bad)
    assert page.locator("#cost-note").is_visible()
    assert shown(page, "cost") == "–"
    assert page.is_disabled('[data-jump="cheap"]')
    page.fill("#fp-cost", "2")
    assert not page.locator("#cost-note").is_visible()
    assert shown(page, "cost") != "–"


@pytest.mark.parametrize("width", [390, 1200])
def test_the_first_screen_says_what_to_do(visit, file, width):
    page = visit(file, width=width)
    box = page.locator(".verdict").bounding_box()
    assert box["y"] + box["height"] < 800
    assert not page.locator("#methods").is_visible()  # folded
    assert page.locator("#steps .axis .grid").count() > 1
    unfold(page)
    assert page.locator("#methods .axis").count() == 3  # an axis over every column of intervals


def test_paper_has_nothing_folded(visit, file):
    page = visit(file)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#methods").is_visible()


@pytest.mark.parametrize("width", [390, 1200])
def test_the_name_of_a_metric_never_wraps(visit, tmp_path, width):
    report.write(comparison(title="cost:fp=1,fn=20", seeds=1), tmp_path / "page.html")
    page = visit(tmp_path / "page.html", width=width)
    unfold(page)
    lines = page.locator(".whole").evaluate_all("x => x.map(e => e.getClientRects().length)")
    tall = page.locator(".whole").evaluate_all(
        "x => x.map(e => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).fontSize))"
    )
    assert len(lines) > 4
    assert set(lines) == {1}
    assert max(tall) < 2


def test_sorting_by_mouse_and_keyboard(visit, file, made):
    page = visit(file)

    def column(i):
        return page.locator(f"#methods tbody tr > :nth-child({i + 1})").evaluate_all("x => x.map(e => e.dataset.v)")

    def state(i):
        return page.get_attribute(f"#methods thead th:nth-child({i + 1})", "aria-sort")

    unfold(page)
    inner = [float(x) for x in column(5) if x != "nan"]
    assert inner == sorted(inner, reverse=True)
    assert state(5) == "descending"
    page.click("#methods thead th:nth-child(2) button")
    scores = [float(x) for x in column(1)]
    assert scores == sorted([c.score.mean for c in made.candidates] + [made.constant.score.mean], reverse=True)
    assert (state(1), state(5)) == ("descending", None)
    page.focus("#methods thead th:nth-child(2) button")
    page.keyboard.press("Enter")
    assert [float(x) for x in column(1)] == scores[::-1]
    assert state(1) == "ascending"
    page.click("#methods thead th:nth-child(1) button")
    assert column(0) == sorted([c.name for c in made.candidates] + [made.constant.name], key=str.lower)
    page.click("#methods thead th:nth-child(5) button")
    assert column(4)[-1] == "nan"  # the baseline has no p, and stays last either way
    page.click("#methods thead th:nth-child(5) button")
    assert column(4)[-1] == "nan"
    page.click("#methods thead th:nth-child(10) button")
    assert column(9)[0].startswith("calls everything")


def test_methods_can_be_hidden(visit, file):
    page = visit(file)
    curve = page.locator('svg[data-live="roc"] path.s[data-m="2"]')
    assert curve.is_visible()
    page.uncheck('[data-show="2"]')
    assert not curve.is_visible()
    page.click('[data-every="1"]')
    assert curve.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visit, either, scheme):
    page = visit(either, scheme=scheme)

    def brightness():
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, colour[4:-1].split(",")))

    first = brightness()
    assert (first > 600) == (scheme == "light")
    page.click("#theme")
    assert (brightness() > 600) != (scheme == "light")
    again = page.context.new_page()  # the choice is kept
    again.goto(page.url)
    assert again.inner_text("#theme") == page.inner_text("#theme") != ("Dark" if scheme == "light" else "Light")
    page.click("#theme")
    assert brightness() == first


@pytest.mark.parametrize("width", [320, 375, 768])
def test_a_narrow_page_does_not_scroll_sideways(visit, either, file, width):
    page = visit(either, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if either == file:
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        box = page.locator(".scroll:has(#methods)").evaluate("x => [x.scrollWidth, x.clientWidth]")
        assert box[0] > box[1]  # the table does, in its own box
    for line in page.locator("svg.chart").all():
        assert line.bounding_box()["width"] <= width


def test_a_picture_says_the_score_under_the_mouse(visit, explained):
    page = visit(explained)
    space = page.locator("figure").first
    metric, n = fbeta.FBeta(2), 32
    for u, t in ((0, n - 1), (20, 3), (n - 1, 0)):
        # Pointers that a test moves meet marks and lines as well; an event on the cell itself does not.
        space.locator("path.cell").nth(t * n + u).dispatch_event("pointerover", {"bubbles": True})
        rates = (u + 0.5) / n, (t + 0.5) / n
        score = metric(fbeta.Confusion.from_rates(*rates, 0.1))
        said = f"u = {rates[0]:.2f}, t = {rates[1]:.2f}: score {score:.3g}"
        assert space.locator(".readout").inner_text() == said
    space.locator("path.grid").first.dispatch_event("pointerover", {"bubbles": True})
    assert space.locator(".readout").inner_text() == ""


def test_malice_stays_text(visit, tmp_path):
    nasty = "</script><img src=x onerror=alert(1)><script>alert(2)</script>" + "W" * 80
    made = comparison(
        table=nasty, target=nasty, note=nasty, title=nasty, names=[f"{nasty}{i}" for i in range(6)], seeds=2
    )
    report.write(made, tmp_path / "page.html")
    page = visit(tmp_path / "page.html", width=375)
    assert page.inner_text("h1").startswith(nasty)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert page.locator("#methods tbody tr").count() == 7


def test_without_scripts_the_page_is_still_there(visit, file, explained, made):
    page = visit(file, scripts=False)
    assert page.locator("#methods tbody tr").count() == len(made.candidates) + 1
    assert page.locator("svg.chart").first.is_visible()
    assert not page.locator("#steer").is_visible()
    assert visit(explained, scripts=False).locator("svg.chart").count() == 3
