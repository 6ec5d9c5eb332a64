"""The model file: what is written is what is read, and anything else is refused in one sentence."""

import copy
import hashlib
import io
import json
import random
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from fbeta import Confusion, metric
from fbeta.artifact import ArtifactError, Model, load, save
from fbeta.artifact.model_file import ABOUT, from_bytes, to_bytes
from fbeta.learners.network import Network
from fbeta.sealed import seal
from fbeta.tables import TableError
from fbeta.tables.streaming import typed
from made_up_model import fitted, frame, members

pl = pytest.importorskip("polars")
pytest.importorskip("safetensors")


@pytest.fixture(scope="module")
def linear():
    return fitted()


@pytest.fixture(scope="module")
def content(linear):
    return to_bytes(linear)


@pytest.mark.parametrize("model", ["linear", "mlp", "xgboost", "lightgbm"])
@pytest.mark.parametrize("loss", ["bce", "surrogate"])
def test_what_is_written_is_what_is_read(model, loss, tmp_path):
    pytest.importorskip(model if "boost" in model or "gbm" in model else "torch")
    made = fitted(model, loss)
    save(made, tmp_path / "model.fbeta")
    read = load(tmp_path / "model.fbeta")
    assert [file.name for file in tmp_path.iterdir()] == ["model.fbeta"]
    rows = frame(seed=1)
    assert np.array_equal(read.probability(rows), made.probability(rows))
    assert (read.decide(rows) == made.decide(rows)).all()
    assert set(read.decide(rows)) == {"bad", "good"}
    called, truth = (x == "bad" for x in (read.decide(rows), rows["fraud"].to_numpy()))
    assert read.metric(Confusion.from_predictions(called * 1.0, truth * 1.0)) > 0.6  # everything positive has 0.56
    assert (read.metric, read.cut, read.columns, read.provenance) == (
        made.metric,
        made.cut,
        made.columns,
        made.provenance,
    )
    assert read.cut.interval == made.cut.interval
    assert repr(read) == f"Model('{model}, {loss}' for 'fbeta:beta=2', 6 columns, fraud 'bad')"


@pytest.fixture(scope="module")
def mean():
    return to_bytes(fitted(ensemble=True))


@pytest.mark.parametrize("model", ["linear", "mlp", "xgboost", "lightgbm"])
def test_an_ensemble_is_written_member_by_member(model, tmp_path):
    pytest.importorskip(model if "boost" in model or "gbm" in model else "torch")
    made, one = (fitted(model, "bce", ensemble=each) for each in (True, False))
    save(made, tmp_path / "model.fbeta")
    read, rows = load(tmp_path / "model.fbeta"), frame(seed=1)
    assert np.array_equal(read.probability(rows), made.probability(rows))
    assert len(read.scorer.members) == made.provenance["folds"]
    assert made.decision.to_dict() == one.decision.to_dict()  # of the same out-of-fold rows
    assert not np.array_equal(made.probability(rows), one.probability(rows))
    X = made.encoder.transform(typed(rows, made.columns))
    scores = np.mean([member(X) for member in made.scorer.members], axis=0)[:, 0]
    assert np.allclose(made.probability(rows), made.decision.probability(scores))
    assert "the mean of" in made.summary()
    assert "the mean of" not in one.summary()


def test_a_damaged_ensemble_is_refused(mean):
    parts = members(mean)
    about = json.loads(parts[ABOUT])
    first = next(name for name in parts if name.startswith("0/"))
    for wrong in ([], {}, None, about["scorer"]["members"][:-1], [about["scorer"]] * len(about["scorer"]["members"])):
        with pytest.raises(ArtifactError, match="is damaged"):
            from_bytes(changed(mean, "scorer", "members", to=wrong), "x.fbeta")
    with pytest.raises(ArtifactError, match="it lacks 0/weights"):
        from_bytes(seal({name: data for name, data in parts.items() if name != first}), "x.fbeta")
    with pytest.raises(ArtifactError, match="unknown member"):
        from_bytes(seal(parts | {"extra": b""}), "x.fbeta")
    with pytest.raises(ArtifactError, match="is damaged"):
        from_bytes(changed(mean, "scorer", "kind", to="network"), "x.fbeta")


def test_the_members_are_plain(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == [ABOUT, "weights.safetensors"]
        about = json.loads(archive.read(ABOUT))
    assert about["format"] == "fbeta model"
    assert about["provenance"]["rows"] == 300
    assert about["positive"] == "bad"
    assert about["negative"] == ["good"]
    assert b"pickle" not in content


def test_networks_score_as_torch_does():
    rng = np.random.default_rng(0)
    shapes = [(5, 64), (64, 64), (64, 1)]
    weights = tuple(rng.normal(size=s).astype(np.float32) / 8 for s in shapes)
    biases = tuple(rng.normal(size=s[1]).astype(np.float32) for s in shapes)
    layers = []
    for w, b in zip(weights, biases, strict=True):
        layers += [torch.nn.Linear(*w.shape), torch.nn.ReLU()]
        layers[-2].weight.data, layers[-2].bias.data = torch.tensor(w.T), torch.tensor(b)
    rows = rng.normal(size=(1000, 5)).astype(np.float32)
    with torch.no_grad():
        expected = torch.nn.Sequential(*layers[:-1])(torch.tensor(rows))[:, 0].numpy()
    assert np.abs(Network(weights, biases)(rows)[:, 0] - expected).max() < 1e-5


def test_prediction_needs_no_torch(content, tmp_path):
    (tmp_path / "model.fbeta").write_bytes(content)
    frame().write_csv(tmp_path / "new.csv")
    code = f"""
import sys
from fbeta.cli import app
sys.argv = ["fbeta", "predict", {str(tmp_path / "model.fbeta")!r}, {str(tmp_path / "new.csv")!r}, "-o",
            {str(tmp_path / "out.csv")!r}]
try:
    app()
except SystemExit as end:
    print(end.code, "torch" in sys.modules, "sklearn" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False False"


def test_a_metric_of_ones_own_is_refused_without_code_in_files(linear, tmp_path):
    own = replace(linear, metric=metric(lambda tp, fp, fn, tn: tp / (tp + fp + fn + 1e-9)))
    with pytest.raises(ArtifactError, match="plain function, which no file can hold without code"):
        save(own, tmp_path / "model.fbeta")
    assert not list(tmp_path.iterdir())


def test_every_flipped_or_missing_byte_is_noticed(content):
    luck = random.Random(0)
    for _ in range(400):
        damaged = bytearray(content)
        if luck.random() < 0.3:
            del damaged[luck.randrange(len(damaged)) :]
        else:
            damaged[luck.randrange(len(damaged))] ^= 1 << luck.randrange(8)
        with pytest.raises(ArtifactError, match=r"^x\.fbeta is .*\.$") as error:
            from_bytes(bytes(damaged), "x.fbeta")
        assert "\n" not in str(error.value)


def test_made_up_descriptions_never_end_in_another_error(content):
    """Sealed again, so that no sum helps: every text either makes a model or is refused."""
    luck = random.Random(1)
    parts = members(content)
    refused = 0
    for _ in range(1500):
        text = bytearray(parts[ABOUT])
        for _ in range(luck.randrange(1, 4)):
            at = luck.randrange(len(text))
            text[at : at + luck.choice([0, 1, 1, 9])] = luck.choice(
                [b"", b"0", b"-", b'"', b"{", b"]", b"null", b"1e999", b"NaN", b"\xff"]
            )
        try:
            made = from_bytes(seal(parts | {ABOUT: bytes(text)}), "x.fbeta")
        except ArtifactError:
            refused += 1
        else:
            assert isinstance(made, Model)
    assert 500 < refused < 1500


def changed(content, *path, to):
    parts = members(content)
    about = json.loads(parts[ABOUT])
    at = about
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return seal(parts | {ABOUT: json.dumps(about).encode()})


def weights(content, **arrays):
    from safetensors.numpy import load as read
    from safetensors.numpy import save as made

    held = read(members(content)["weights.safetensors"])
    return seal(members(content) | {"weights.safetensors": made(held | arrays)})


def zipped(compression, content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members(content).items():
            archive.writestr(name, data)
    return out.getvalue()


def resealed(data):
    """Any zip with a right sum."""
    import hashlib

    body = data[:-2] + (71).to_bytes(2, "little")
    return body + b"sha256:" + hashlib.sha256(body).hexdigest().encode()


REFUSED = {
    "empty": (lambda c: b"", "is empty"),
    "text": (lambda c: b"id,x\n1,2\n", "is no model of fbeta: give the file that `fbeta fit` wrote"),
    "pickle": (lambda c: b"\x80\x04\x95", "is no model of fbeta"),
    "another zip": (lambda c: zipped(zipfile.ZIP_STORED, c), "is truncated"),
    "a foreign zip": (lambda c: seal({"a.txt": b"x"}), "is damaged (no 'model.json')"),
    "zip, no model": (lambda c: b"PK\x03\x04" + b"x" * 200, "is a zip, but no model of fbeta"),
    "compressed": (lambda c: resealed(zipped(zipfile.ZIP_DEFLATED, c)), "its members are compressed"),
    "truncated": (lambda c: c[:-100], "is truncated: copy it again"),
    "half": (lambda c: c[: len(c) // 2], "is truncated"),
    "longer": (lambda c: c + b"\0", "is truncated"),
    "flipped": (lambda c: c[:200] + bytes([c[200] ^ 1]) + c[201:], "is damaged (its checksum does not match)"),
    "no weights": (lambda c: seal({ABOUT: members(c)[ABOUT]}), "it lacks weights.safetensors"),
    "one more": (lambda c: seal(members(c) | {"run.py": b""}), "it has an unknown member 'run.py'"),
    "a path": (lambda c: seal(members(c) | {"../../etc/x": b""}), "it has an unknown member '../../etc/x'"),
    "no JSON": (lambda c: seal(members(c) | {ABOUT: b"{"}), "is damaged"),
    "a list": (lambda c: seal(members(c) | {ABOUT: b"[]"}), "it is no object"),
    "deep JSON": (lambda c: seal(members(c) | {ABOUT: b"[" * 200_000}), "is damaged"),
    "other format": (lambda c: changed(c, "format", to="gguf"), "is a zip, but no model of fbeta"),
    "newer": (
        lambda c: changed(c, "version", to=3),
        "was written by a newer fbeta (0.1.0, format 3, and this one reads 2): upgrade fbeta",
    ),
    "older": (
        lambda c: changed(c, "version", to=1),
        "was written by an older fbeta (format 1, and this one reads 2): fit the model again",
    ),
    "model": (lambda c: changed(c, "model", to="pickle"), "cannot be used here: Unknown model 'pickle'"),
    "metric": (
        lambda c: changed(c, "metric", to="profit:per=3"),
        "names a metric that is not known here (Unknown metric 'profit'",
    ),
    "sizes": (lambda c: changed(c, "scorer", "sizes", to=[3, 1]), "where [3, 1] are said"),
    "cut": (lambda c: changed(c, "decision", "cuts", 0, "value", to="nan"), "its cut is no number"),
    "calibration": (lambda c: changed(c, "decision", "calibration", 0, "slope", to=-1.0), "no rising line"),
    "columns": (lambda c: changed(c, "decision", "several", to=True), "its decision is of several columns"),
    "classes": (lambda c: changed(c, "negative", to=[]), "its classes are no texts"),
    "encoder": (lambda c: changed(c, "encoder", "parts", 0, "deviation", to=0), "cannot be scaled"),
    "fewer features": (lambda c: changed(c, "encoder", "parts", to=[]), "the encoder makes 0"),
    "infinite": (lambda c: weights(c, **{"bias.0": np.array([np.inf], np.float32)}), "weights are not all finite"),
    "shape": (lambda c: weights(c, **{"bias.0": np.zeros(2, np.float32)}), "do not fit together"),
    "type": (lambda c: weights(c, **{"bias.0": np.zeros(1, np.int64)}), "not all finite real numbers"),
    "more tensors": (lambda c: weights(c, extra=np.zeros(1, np.float32)), "holds bias.0, extra, weight.0"),
    "no tensors": (lambda c: seal(members(c) | {"weights.safetensors": b"x" * 99}), "no safetensors file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, content, tmp_path):
    make, words = REFUSED[case]
    (tmp_path / "x.fbeta").write_bytes(make(content))
    with pytest.raises(ArtifactError) as error:
        load(tmp_path / "x.fbeta")
    assert words in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "x.fbeta"))
    assert "\n" not in str(error.value)


def test_an_encrypted_member_is_refused(content):
    members = dict(zip(("model.json", "weights.safetensors"), (b"{}", b""), strict=True))
    body = bytearray(seal(members))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = body.find(mark)
        body[at + place] |= 1
    whole = bytes(body[:-64]).removesuffix(b"sha256:")
    sealed = whole + b"sha256:" + hashlib.sha256(whole).hexdigest().encode()
    with pytest.raises(ArtifactError, match="is damaged"):
        from_bytes(sealed, "model.fbeta")


def test_a_damaged_booster_is_refused():
    pytest.importorskip("xgboost")
    parts = members(to_bytes(fitted("xgboost", "bce")))
    with pytest.raises(ArtifactError, match="is damaged"):
        from_bytes(seal(parts | {"booster.json": b'{"learner": 3}'}), "x.fbeta")


def test_what_is_no_file(tmp_path, monkeypatch):
    (tmp_path / "model.fbeta").write_bytes(b"PK\x03\x04")
    for path, words in (
        (tmp_path / "modle.fbeta", "check its name. Did you mean 'model.fbeta'?"),
        (tmp_path, "is a folder, not a model file"),
        ("/dev/zero", "is no plain file"),
    ):
        with pytest.raises(ArtifactError) as error:
            load(path)
        assert words in str(error.value)
    monkeypatch.setattr("fbeta.artifact.model_file.LARGEST", 3)
    with pytest.raises(ArtifactError, match="larger than any model"):
        load(tmp_path / "model.fbeta")


def test_new_rows_are_checked(linear):
    rows = frame(20, seed=2)
    with pytest.raises(TableError, match="lacks the column 'x1' that the model learnt from: add it"):
        linear.probability(rows.drop("x1"))
    with pytest.raises(TableError, match="'x1' is 'many' in row 1, but the model learnt numbers"):
        linear.probability(rows.with_columns(x1=pl.lit("many")))
    strange = rows.with_columns(shop=pl.lit("z"))
    with pytest.raises(TableError, match=r"new categories \('z'\)"):
        linear.probability(strange)
    assert np.isfinite(linear.probability(strange, new="other")).all()
    assert linear.probability(rows[:0]).shape == (0,)
    shuffled = rows.select(sorted(rows.columns, reverse=True))
    assert np.array_equal(linear.probability(shuffled), linear.probability(rows))


def test_columns_without_a_feature_are_not_asked_for(linear):
    idle = copy.copy(linear.encoder)
    assert "new" in [c.name for c in linear.columns]
    without = replace(idle, schema=(*idle.schema, replace(idle.schema[0], name="unused")))
    assert [c.name for c in replace(linear, encoder=without).columns] == [c.name for c in linear.columns]


def test_one_class_against_many_is_named(linear):
    assert linear.labels == ("good", "bad")
    assert replace(linear, negative=("a", "b")).labels == ("not bad", "bad")
