"""Commands and data sets of other packages: found by entry points, loaded only if asked for, explained if missing."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from fbeta import data, datasets, extensions
from fbeta.cli import app


def fbeta(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def alone(monkeypatch):
    """The library without any other package."""
    monkeypatch.setattr(extensions, "_found", lambda group: {})


@pytest.fixture
def other(monkeypatch):
    """Another package, with a command `greet` and a data set `tiny`."""
    module = ModuleType("other_package")
    module.app = typer.Typer(help="Greets people.")

    @module.app.command("all")
    def everyone():
        typer.echo("hello, all")

    @module.app.command("one")
    def one(name: str):
        typer.echo(f"hello, {name}")

    module.DATASET = replace(data.get("digits"), name="tiny")
    points = {
        extensions.COMMANDS: [EntryPoint("greet", "other_package:app", extensions.COMMANDS)],
        extensions.DATASETS: [EntryPoint("tiny", "other_package:DATASET", extensions.DATASETS)],
    }
    monkeypatch.setattr(extensions, "_found", lambda group: {point.name: point for point in points[group]})
    return lambda: monkeypatch.setitem(sys.modules, "other_package", module)


def test_a_command_of_another_package(other):
    assert fbeta("explain", "--help").exit_code == 0  # the package is not even there yet
    other()
    assert fbeta("greet", "one", "you").stdout == "hello, you\n"
    shown = fbeta("--help").stdout
    assert "greet" in shown
    assert "Greets people." in shown
    assert fbeta("nonsense").exit_code == 2


def test_a_data_set_of_another_package(other, tmp_path, monkeypatch):
    assert data.names() == [*datasets._SETS, "tiny"]  # nothing was imported for its name
    other()
    assert data.get("tiny").name == "tiny"
    assert data.load("tiny").train.shape == (1438, 8, 8, 1)
    assert "tiny" in fbeta("data", "list").stdout
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").touch()
    assert not data.is_path("tiny")  # a name is a name, whatever lies in the folder


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--epochs", "3"], ["status"]])
def test_the_paper_is_not_installed(alone, arguments):
    result = fbeta("paper", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("fbeta: fbeta paper comes with the package fbeta-reproduction")
    assert result.stderr.count("\n") == 1
    assert "pip install ./reproduction" in result.stderr
    assert " paper " not in fbeta("--help").stdout


@pytest.mark.parametrize("name", ["cifar10", "fashion-mnist"])
def test_a_data_set_of_the_reproduction_is_not_installed(alone, name):
    for call in (data.get, data.path, data.fetch, data.load, data.load_images):
        with pytest.raises(data.DataError, match=f"^{name} comes with the package fbeta-reproduction, which is not"):
            call(name)
    result = fbeta("data", "fetch", name)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert name not in data.names()


def test_a_name_that_nobody_has_is_no_package_to_install(alone):
    with pytest.raises(ValueError, match="Unknown data set 'cifar100'"):
        data.get("cifar100")
