"""The walk of a row through `fbeta compare`, as ARCHITECTURE.md shows it: each module once, in that order."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from fbeta.cli import app

pytest.importorskip("polars")
ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fbeta"


def told():
    """The modules of the walk, in the order of the document."""
    walk = (
        (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("<!-- walk:start -->")[1].split("<!-- walk:end")[0]
    )
    return re.findall(r"^\| \[(\S+)\]\(src/fbeta/\1\)", walk, re.MULTILINE)


def walked(arguments):
    """The modules whose functions are called by a command, in the order of their first call."""
    for module in told():  # what runs when a module is imported is not part of the walk
        importlib.import_module(f"fbeta.{module.removesuffix('.py').replace('/', '.')}")
    seen = {}

    def look(frame, *_):
        path = frame.f_code.co_filename
        if path.startswith(str(SOURCE)):
            seen.setdefault(Path(path).relative_to(SOURCE).as_posix())

    sys.settrace(look)  # is told of calls only
    try:
        app(arguments, standalone_mode=False)
    finally:
        sys.settrace(None)
    return list(seen)


def test_a_row_walks_through_each_module_once_in_the_order_told(tmp_path, monkeypatch):
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("fbeta.comparison.plan._probe_loss", lambda *_: "")  # which asks a loss about made-up rows
    chance = np.random.default_rng(0)
    X = chance.normal(size=(200, 2))
    y = X[:, 0] + chance.normal(size=200) > 1
    rows = (f"{a:.3f},{b:.3f},{int(one)}" for (a, b), one in zip(X, y, strict=True))
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *rows]))
    command = ["compare", str(tmp_path / "rows.csv"), "--target", "y", "--models", "linear", "--losses", "tangent"]
    found = walked([*command, "--seeds", "2", "--folds", "2", "--jobs", "1"])
    assert len(told()) > 15
    assert [module for module in found if module in told()] == told()
