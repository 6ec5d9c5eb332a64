"""Data sets: what is loaded, the command line, and what is known of the real sets where they are here."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_digits

from fbeta import data
from fbeta.cli.data import meter
from fbeta.datasets import bundled
from tiny_data import cli

pytestmark = pytest.mark.usefixtures("own_cache")


# The sets


def test_digits_are_scikit_learns_split_by_class():
    d, raw = data.load("digits"), load_digits()
    assert (len(d.train), len(d.test)) == (data.get("digits").train, data.get("digits").test)
    counts, test = np.bincount(raw.target), np.bincount(d.test_labels)
    np.testing.assert_array_equal(np.bincount(d.train_labels) + test, counts)
    assert (abs(test - counts / 5) < 1).all()
    pixels = {tuple(np.rint(x / 16 * 255).astype(int).ravel()) for x in raw.images}
    assert {tuple(x.ravel()) for x in np.concatenate([d.train, d.test])} == pixels
    third = np.flatnonzero(raw.target == 3)[2]
    np.testing.assert_array_equal(d.test[d.test_labels == 3][0, ..., 0], np.rint(raw.images[third] / 16 * 255))


def test_digits_of_another_scikit_learn_are_refused(monkeypatch):
    monkeypatch.setitem(bundled.SHA256, "digits", "0" * 64)
    with pytest.raises(data.DataError, match="pip install scikit-learn"):
        data.load("digits")


def test_digits_without_scikit_learn(monkeypatch):
    monkeypatch.setattr(bundled, "find_spec", lambda name: None)
    for command in ("path", "fetch"):
        result = cli(command, "digits")
        assert result.exit_code == 2
        assert "pip install 'fbeta[data]'" in result.stderr
    assert not data.get("digits").here()


def test_what_is_loaded_can_go_into_a_tensor():
    import torch

    d = data.load("digits")
    for images, labels in ((d.train, d.train_labels), (d.test, d.test_labels)):
        assert images.dtype == np.uint8
        assert images.flags.c_contiguous
        assert images.shape[1:] == data.get("digits").shape
        assert labels.dtype == np.int64
        assert torch.from_numpy(images).shape[0] == torch.from_numpy(labels).shape[0]
    assert len(d.classes) == 10
    assert "digits" in repr(d)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"train": np.zeros((2, 8, 8, 1))}, TypeError),
        ({"train": np.zeros((2, 8, 8), np.uint8)}, ValueError),
        ({"test": np.zeros((1, 9, 8, 1), np.uint8)}, ValueError),
        ({"train_labels": np.zeros(3, np.int64)}, ValueError),
        ({"train_labels": np.array([0, 10])}, ValueError),
        ({"train_labels": np.array([0, -1])}, ValueError),
    ],
)
def test_images_that_do_not_fit(change, error):
    fields = {
        "train": np.zeros((2, 8, 8, 1), np.uint8),
        "train_labels": np.zeros(2, np.int64),
        "test": np.zeros((1, 8, 8, 1), np.uint8),
        "test_labels": np.zeros(1, np.int64),
    }
    data.Images("made up", classes=tuple("0123456789"), **fields)
    with pytest.raises(error, match="made up"):
        data.Images("made up", classes=tuple("0123456789"), **fields | change)


# The command line


def test_list():
    result = cli("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == data.names()
    assert lines[1].split() == ["digits", "1,438", "359", "8x8x1", "10", "0.1", "scikit-learn", "yes"]
    assert str(data.root()) in lines[-1]
    facts = json.loads(cli("list", "--json").stdout)
    assert {f["name"] for f in facts if f["here"]} == {"digits", "breast-cancer"}


def test_path_and_fetch_print_the_same():
    assert cli("fetch", "digits").stdout == cli("path", "digits").stdout


def test_bars_on_a_terminal_and_lines_in_a_log():
    def shown(**options):
        console = Console(file=io.StringIO(), width=80, **options)
        with meter(console) as tell:
            tell("npm pack [x]", 0, 0)
            tell("long-name.gz", 1_000_000, 2_000_000)
            tell("long-name.gz", 2_000_000, 2_000_000)
            tell("x", 3_000_000, 0)
        return console.file.getvalue()

    assert shown() == "npm pack [x]\n"
    screen = shown(force_terminal=True)
    assert "npm pack [x]" in screen
    assert "2.0/2.0 MB" in screen
    assert "3.0/? MB" in screen


def test_looking_needs_no_numpy():
    code = (
        "import sys; from fbeta import data; from fbeta.cli.data import listing;"
        "listing(data.get(n).facts() for n in data.names()); print({'numpy', 'pooch', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
