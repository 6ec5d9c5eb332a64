"""docs/losses.md and systems.md: examples run, and tables say of every loss what the class does."""

import doctest
import re
from pathlib import Path

from fbeta import losses
from fbeta.learners import Learner, models
from fbeta.losses.module import Loss
from fbeta.losses.task import TASKS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "losses.md"
SYSTEMS = PAGE.with_name("systems.md")


def test_examples_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0
    assert tried > 15


def test_the_table_has_every_loss_as_it_is():
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|.*\| ([\w ]+) \| (yes|no) \|.*\|$", PAGE.read_text(), re.M)
    assert sorted(row[0] for row in rows) == losses.names()
    for name, cls, tasks, none in rows:
        loss = Loss.registry[name]
        assert cls == loss.__name__
        assert tasks == ("all" if set(loss.tasks) == set(TASKS) else "all but multiclass")
        assert set(TASKS) - set(loss.tasks) <= {"multiclass"}
        assert none == ("yes" if "none" in loss.reductions else "no")


def test_the_systems_are_found_by_the_names_of_their_table():
    failed, tried = doctest.testfile(str(SYSTEMS), module_relative=False)
    assert failed == 0
    assert tried > 3
    assert models.names()  # by which they are registered
    table = SYSTEMS.read_text().partition("## The table")[2].partition("\n## ")[0]
    rows = [row.split(" | ")[:2] for row in re.findall(r"^\| ([^-].*)$", table, re.M)][1:]
    assert len(rows) == 18
    # LibAUC need not be installed; a sampler and a plus may stand before a model.
    kinds = {"loss": losses.Loss.registry, "model": Learner.registry}
    for system, name in rows:
        listed = re.findall(r"\b(loss|model)(?:es|s)? ((?:`[^`]+`(?:, )?)+)", name)
        assert listed, system
        for kind, several in listed:
            for one in re.findall("`([^`]+)`", several):
                assert one.rpartition("+")[2] in kinds[kind], one
    cited = "Joachims", "Kar", "Narasimhan", "Sanyal", "Eban", "Koyejo", "Cui", "Wang", "Zhang", "Pastor", "Chawla"
    assert all(any(author in system for system, _ in rows) for author in cited)
