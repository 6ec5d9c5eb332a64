"""Small model files to change by hand: their rows, their members, and what a member says."""

import functools
import io
import json
import zipfile

import numpy as np
import polars as pl

from fbeta.artifact.model_file import to_bytes
from fbeta.comparison.run import fit
from fbeta.sealed import seal
from fbeta.tables import read_frame


def frame(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    x = rng.normal(size=(n, 3)) + 1.2 * y[:, None]
    columns = {f"x{i}": x[:, i] for i in range(3)}
    days = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)]
    other = {"shop": rng.choice(["a", "b", "c"], n), "day": days, "new": rng.choice(["yes", "no"], n)}
    return pl.DataFrame(columns | other | {"fraud": np.where(y, "bad", "good")})


def fitted(model="linear", loss="tangent", **options):
    return fit(
        read_frame(frame(), "fraud", name="shops"), metric="fbeta:beta=2", models=model, losses=loss, folds=2, **options
    )


@functools.cache
def content(model="linear", loss="tangent"):
    """The bytes of a model's file."""
    return to_bytes(fitted(model, loss))


def members(sealed):
    with zipfile.ZipFile(io.BytesIO(sealed)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(sealed, member, change):
    """The same file, with a right checksum, after something was done to the JSON of a member."""
    parts = members(sealed)
    said = json.loads(parts[member])
    change(said)
    return seal(parts | {member: json.dumps(said).encode()})
