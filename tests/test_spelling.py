"""Names and specs that people type, and what sealed files and commands say about them."""

from pathlib import Path

import pytest

from fbeta import Cost
from fbeta.cli.data import listing
from fbeta.cli.parameters import columns, names, next_step
from fbeta.data import get
from fbeta.sealed import in_short, seal, unseal
from fbeta.spelling import did_you_mean, read_options, register, unknown


def test_what_is_nearly_right_is_asked_for():
    assert did_you_mean("tangnet", ["bce", "tangent"]) == " Did you mean 'tangent'?"
    assert did_you_mean("IS_FRUAD", ["amount", "is_fraud"], ask="Is it") == " Is it 'is_fraud'?"
    assert did_you_mean("x", ["bce", "tangent"]) == ""
    said = "Unknown rule 'exakt'. Did you mean 'exact'? Choices: exact, shrunk; or a Rule."
    assert str(unknown("rule", "exakt", ["exact", "shrunk"], more="; or a Rule")) == said


def test_a_name_belongs_to_one_class():
    known = {}
    register(known, "int", int, "kind of number")
    register(known, "int", int, "kind of number")  # a notebook's cell that runs twice
    with pytest.raises(ValueError, match=r"^A kind of number named 'int' exists already \(builtins\); rename yours.$"):
        register(known, "int", float, "kind of number")
    assert known == {"int": int}


def test_options_of_a_spec():
    assert read_options(Cost, "fp=1, fn=20") == {"fp": 1.0, "fn": 20.0}


def test_a_sealed_file():
    assert unseal(seal({"a": b"x"})) == {"a": b"x"}
    with pytest.raises(ValueError, match="^is truncated$"):
        unseal(seal({"a": b"x"})[:-1])
    assert in_short(KeyError("cut")) == "no 'cut'"


def test_what_commands_read_and_say():
    assert names("linear, mlp") == ["linear", "mlp"]
    assert (columns(["id,day", "note"]), columns(None)) == (["id", "day", "note"], [])
    said = "Written: model.fbeta. Next: fbeta predict model.fbeta NEW.csv -o predictions.csv"
    assert next_step(Path("model.fbeta")) == said
    assert listing([get("creditcard").facts() | {"here": False}]).splitlines() == [
        "name        train    test  shape       classes  MB     sources         here",
        "creditcard  284,807  –     29 columns  2        150.8  upstream, pypi  no",
    ]
