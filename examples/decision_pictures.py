"""The pictures of docs/decisions.md, drawn from real rows: scikit-learn's digits, and results of benchmarks/.

``python examples/decision_pictures.py --write`` draws them into docs/decisions/, without it into build/decisions/;
``--only NAME`` draws one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import column_pictures as columns
import cut_pictures as cuts
from digits import ROOT
from matplotlib.figure import Figure

from fbeta.report.png import save

PICTURES: dict[str, Callable[[], Figure]] = {
    "one-cut": cuts.one_cut,
    "few-positives": cuts.few_positives,
    "share-moves": cuts.share_moves,
    "row-scores": columns.row_scores,
    "rare-labels": columns.rare_labels,
    "several-classes": columns.several_classes,
    "promises": cuts.promises,
    "for-a-person": cuts.for_a_person,
    "averaged-models": columns.averaged_models,
    "budgets-and-costs": cuts.budgets_and_costs,
}


def main() -> None:
    """Draw all pictures, or one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="rewrite docs/decisions/")
    parser.add_argument("--only", choices=PICTURES)
    given = parser.parse_args()
    folder = ROOT / ("docs" if given.write else "build") / "decisions"
    folder.mkdir(parents=True, exist_ok=True)
    for name in [given.only] if given.only else PICTURES:
        save(PICTURES[name](), folder / f"{name}.png")


if __name__ == "__main__":
    main()
