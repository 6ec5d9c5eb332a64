"""What is written down after an epoch, and where the runs stand: against scikit-learn and `fbeta.tune`."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rich.console import Console
from sklearn.metrics import accuracy_score, fbeta_score
from typer.testing import CliRunner

from fbeta import FBeta, tune
from fbeta.cli import app
from fbeta_reproduction import status
from fbeta_reproduction.protocol import BETAS, PRESETS, PROTOCOL, Run, whole_plan
from fbeta_reproduction.records.ledger import Ledger
from fbeta_reproduction.results import measurement

SIZES = {"train": 540, "val": 60, "test": 100}


def rows(rng, sizes=SIZES, decimals=None):
    y = {k: (rng.random(n) < 0.2).astype(np.uint8) for k, n in sizes.items()}
    z = {k: (rng.normal(size=n) + 2 * y[k] - 1).astype(np.float32) for k, n in sizes.items()}
    return ({k: v.round(decimals) for k, v in z.items()} if decimals is not None else z), y


def f_of(found, name, y, beta):
    tp, fp = found[f"{name}_tp"], found[f"{name}_fp"]
    return (1 + beta**2) * tp / (beta**2 * y.sum() + tp + fp) if tp else 0.0


@pytest.mark.parametrize("decimals", [None, 1, 0])
@pytest.mark.parametrize("seed", range(4))
def test_row_against_scikit_learn_and_tune(seed, decimals):
    z, y = rows(np.random.default_rng(seed), decimals=decimals)
    found = measurement.row(z, y, 0.25)
    assert found["loss"] == 0.25
    assert ["epoch", *found, "seconds"] == measurement.columns()
    for beta in BETAS:
        for split in z:
            want = fbeta_score(y[split], z[split] >= 0, beta=beta)
            assert f_of(found, split, y[split], beta) == pytest.approx(want, abs=1e-12)
        best = tune(z["val"], y["val"], FBeta(beta))
        assert found[f"cut{beta:g}"] == best.value
        want = fbeta_score(y["test"], z["test"].astype(float) >= best.value, beta=beta)
        assert f_of(found, f"cut{beta:g}", y["test"], beta) == pytest.approx(want, abs=1e-12)


def vector(elements):
    def pair(n):
        labels = hnp.arrays(np.uint8, n, elements=st.integers(0, 1))
        return st.tuples(hnp.arrays(np.float32, n, elements=elements), labels)

    return st.integers(1, 30).flatmap(pair)


@given(*[vector(st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0]))] * 2)
def test_row_of_any_numbers(val, test):
    z = {"train": test[0], "val": val[0], "test": test[0]}
    y = {"train": test[1], "val": val[1], "test": test[1]}
    found = measurement.row(z, y, float("nan"))
    assert found["train_tp"] + found["train_fp"] == (test[0] >= 0).sum()
    largest = np.finfo(np.float32).max
    finite = np.clip(z["val"], -largest, largest)  # `tune` refuses infinite scores
    for beta in BETAS:
        best = tune(finite, y["val"], FBeta(beta))
        cut = found[f"cut{beta:g}"]
        assert cut == best.value
        if np.isinf(cut):
            assert found[f"cut{beta:g}_tp"] == (y["test"].sum() if cut < 0 else 0)
    line = measurement.line({"epoch": 1, **found, "seconds": 0.5})
    assert [float(x) for x in line.split(",")][:2] == pytest.approx([1, np.nan], nan_ok=True)


@pytest.mark.parametrize("where", ["train", "val", "test"])
def test_a_run_with_nan_counts_nothing(where):
    z, y = rows(np.random.default_rng(0))
    z[where][3] = np.nan
    found = measurement.row(z, y, np.nan)
    counts = {k: v for k, v in found.items() if k.endswith("p")}
    assert set(counts.values()) == {0}
    assert len(counts) == 14
    assert all(np.isnan(found[f"cut{beta:g}"]) for beta in BETAS)
    line = measurement.line({"epoch": 2, **found, "seconds": 1.0})
    assert line.startswith("2,nan,0,0,0,0,0,0,nan,0,0,nan")


def test_infinite_logits_are_beyond_every_tuned_cut():
    # Best on validation is to call nothing positive but the perfect row.
    z = dict.fromkeys(("train", "val", "test"), np.array([np.inf, 3, -np.inf], dtype=np.float32))
    y = dict.fromkeys(z, np.array([1, 0, 0]))
    found = measurement.row(z, y, 0.1)
    assert (found["cut1_tp"], found["cut1_fp"]) == (1, 0)
    assert np.isfinite(found["cut1"])
    nothing = measurement.row(z, dict.fromkeys(z, np.zeros(3, dtype=int)), 0.1)
    assert (nothing["cut1"], nothing["cut1_fp"]) == (np.inf, 0)


def test_a_cut_between_neighbouring_floats_stays_between_them():
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2))
    z = dict.fromkeys(("train", "val", "test"), np.array([low, high], dtype=np.float32))
    found = measurement.row(z, dict.fromkeys(z, np.array([0, 1])), 0.1)
    assert (found["cut1_tp"], found["cut1_fp"]) == (1, 0)


def test_fmt_wants_every_column():
    z, y = rows(np.random.default_rng(0))
    with pytest.raises(ValueError, match="A row has the columns epoch, loss"):
        measurement.line(measurement.row(z, y, 0.1))


# Status


@pytest.fixture
def results(tmp_path):
    """Two runs of the plan, one finished and one on its way, and one that nobody planned."""
    folder = tmp_path / "results"
    book = Ledger(folder, PROTOCOL)
    runs = [
        Run("cifar10", "soft", 1.0, epochs=7),
        Run("cifar10", "soft", 1.0, repeat=1, epochs=7),
        Run("cifar10", "soft", 1.0, remedy="new", epochs=7),
    ]
    for run, epochs in zip(runs, (7, 3, 7), strict=True):
        z, y = rows(np.random.default_rng(run.repeat))
        counts = {k: [len(v), int(v.sum())] for k, v in y.items()}
        book.claim([run.id])
        book.begin(run.id, {"run": run.to_dict(), "counts": counts, "machine": {}}, measurement.columns())
        for epoch in range(1, epochs + 1):
            sharper = {k: v + np.float32(0.1 * epoch) for k, v in z.items()}
            row = measurement.row(sharper, y, 1 / epoch)
            book.append(run.id, measurement.line({"epoch": epoch, **row, "seconds": 2.0}))
        if run.repeat == 0:
            book.release([run.id])
    yield folder
    book.release()


def test_status_of_every_run(results):
    found = {row["id"]: row for row in status.status(results, whole_plan(["cifar10", "fashion-mnist"]))}
    planned = {run.id for preset in PRESETS.values() for d in ("cifar10", "fashion-mnist") for run in preset(d)}
    assert found.keys() == planned | {"cifar10/soft-b1-new-r0"}
    done, going, extra, idle = (
        found[f"cifar10/{x}"] for x in ("soft-b1-r0", "soft-b1-r1", "soft-b1-new-r0", "soft-b1-r2")
    )
    assert [row["state"] for row in (done, going, extra, idle)] == ["done", "training", "done", "waiting"]
    assert [row["epochs"] for row in (done, going, extra, idle)] == [7, 3, 7, 0]
    assert [row["wanted"] for row in (done, going, extra, idle)] == [7, 7, 7, 120]
    assert done["claimed_by"] is None
    assert "process" in going["claimed_by"]
    assert (done["loss"], done["beta"], done["q"], done["repeat"], done["precision"]) == ("soft", 1, 0, 0, "bf16")
    assert (extra["label"], idle["f1"], done["seconds"]) == ("soft-b1-new", None, 14.0)


def test_final_scores_are_means_over_the_last_five_epochs(results):
    (row,) = status.status(results, [Run("cifar10", "soft", 1.0)])[:1]
    z, y = rows(np.random.default_rng(0))
    sharper = [{k: (v + np.float32(0.1 * e)).astype(float) for k, v in z.items()} for e in range(3, 8)]
    for beta in BETAS:
        at_half = [fbeta_score(y["test"], s["test"] >= 0, beta=beta) for s in sharper]
        assert row[f"f{beta:g}"] == pytest.approx(np.mean(at_half), abs=1e-12)
        cuts = [tune(s["val"], y["val"], FBeta(beta)).value for s in sharper]
        tuned = [fbeta_score(y["test"], s["test"] >= c, beta=beta) for s, c in zip(sharper, cuts, strict=True)]
        assert row[f"tuned_f{beta:g}"] == pytest.approx(np.mean(tuned), abs=1e-12)
    assert row["accuracy"] == pytest.approx(np.mean([accuracy_score(y["test"], s["test"] >= 0) for s in sharper]))
    assert row["positive"] == pytest.approx(np.mean([(s["test"] >= 0).mean() for s in sharper]))


def test_damaged_and_foreign_files_are_rows_too(results):
    (results / "cifar10" / "soft-b1-r0.csv").write_text("# {")
    (results / "cifar10" / "other.csv").write_text('# {"run": {"colour": "red"}}\nepoch\n')
    found = {row["id"]: row for row in status.status(results, [Run("cifar10", "soft", 1.0)])}
    assert "is damaged" in found["cifar10/soft-b1-r0"]["error"]
    assert "does not describe a run" in found["cifar10/other"]["error"]
    assert found["cifar10/other"]["dataset"] == "cifar10"
    console = Console(width=120, record=True, file=StringIO())
    status.show(list(found.values()), console)
    assert console.export_text().count("is damaged") == 1


def test_cli_table(results):
    text = CliRunner().invoke(app, ["paper", "status", "--results", str(results)]).stdout
    planned = {name: len(whole_plan([name])) for name in ("cifar10", "fashion-mnist")}
    assert f"CIFAR-10  2 of {planned['cifar10'] + 1} runs finished" in text
    (line,) = (x for x in text.splitlines() if x.split()[:1] == ["soft-b1-new"])
    assert line.split()[1:3] == ["1/1", "7/7"]
    assert (len(line.split()), line.split()[-1]) == (14, "14")  # seconds
    assert "soft-b1  " in text
    assert "1 in training by" in text
    assert f"Fashion-MNIST  0 of {planned['fashion-mnist']} runs finished" in text
    assert "digits" not in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_number_is_cut_off(results, width):
    console = Console(width=width, record=True, force_terminal=True, file=StringIO())
    status.show(status.status(results, []), console)
    text = console.export_text()
    assert "…" not in text
    assert ("F₁*" in text) == (width >= 100)


def test_cli_json(results):
    out = CliRunner().invoke(app, ["paper", "status", "--results", str(results), "--json"]).stdout
    found = json.loads(out, parse_constant=lambda x: pytest.fail(f"{x} is not JSON"))
    assert len(found) == len(whole_plan()) + 1
    assert sum(row["state"] == "done" for row in found) == 2


def test_cli_without_a_folder_is_a_sentence(tmp_path):
    result = CliRunner().invoke(app, ["paper", "status", "--results", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "there is no results folder" in result.stderr
    assert "Traceback" not in result.output


def test_status_does_not_pay_for_torch():
    code = "import fbeta_reproduction.status, fbeta_reproduction.records.ledger, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_the_default_folder_is_not_created():
    before = Path("reproduction/results").exists()
    CliRunner().invoke(app, ["paper", "status"])
    assert Path("reproduction/results").exists() == before
