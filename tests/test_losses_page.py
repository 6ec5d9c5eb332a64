"""docs/losses.md and systems.md: examples run, and tables say of every loss what the class does."""

import doctest
import re
from pathlib import Path

from fbeta import losses
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
    named = re.findall(r"^\| [^|]+ \| `([\w-]+)`", SYSTEMS.read_text(), re.M)
    assert len(named) == 10
    assert set(named) <= set(losses.names())
