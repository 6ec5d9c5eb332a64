"""One file: a zip whose members are stored as they are, and whose comment is the SHA-256 of all bytes before it."""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import fbeta
from fbeta.artifact import scorers
from fbeta.artifact.model import ArtifactError, Model
from fbeta.artifact.outputs import check_output, naming
from fbeta.decisions import Platt, Threshold
from fbeta.metrics import Custom
from fbeta.metrics import metric as read_metric
from fbeta.spelling import did_you_mean
from fbeta.writing import write

FORMAT, VERSION = "fbeta model", 1
ABOUT = "model.json"
#: No model that this package fits comes near.
MOST = 1 << 30
_SEAL = b"sha256:"
_SEALED = len(_SEAL) + 64
_AGAIN = "copy it again, or fit the model again"


def save(model: Model, path: Path | str) -> None:
    """Write a model to one file, whole or not at all.

    >>> import tempfile
    >>> from fbeta.comparison.fitting import fit
    >>> path = Path(tempfile.mkdtemp(), "model.fbeta")
    >>> save(fit("breast-cancer", models="linear", losses="bce", folds=2), path)
    >>> load(path).target
    'diagnosis'
    """
    path = check_output(path)
    data = to_bytes(model)
    with naming(path):
        write(path, data)


def load(path: Path | str) -> Model:
    """Read a model; whatever is wrong with the file is an ArtifactError in one sentence.

    >>> load("nothing.fbeta")
    Traceback (most recent call last):
    fbeta.artifact.model.ArtifactError: there is no file nothing.fbeta: check its name.
    """
    path = Path(path).expanduser()
    try:
        if not path.is_file():
            beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            what = "is a folder, not a model file" if path.is_dir() else "is no plain file"
            hint = "" if path.exists() else did_you_mean(path.name, beside)
            raise ArtifactError(
                f"{path} {what}." if path.exists() else f"there is no file {path}: check its name.{hint}"
            )
        if path.stat().st_size > MOST:
            raise ArtifactError(f"{path} is larger than any model of fbeta: give the file that `fit` wrote.")
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror or error}.") from error
    return from_bytes(data, str(path))


def to_bytes(model: Model) -> bytes:
    """The content of a model's file."""
    if isinstance(model.metric, Custom):
        raise ArtifactError(
            f"{model.metric} is a plain function, which no file can hold without code: subclass Metric, and import "
            "that class before you load."
        )
    about = {
        "format": FORMAT,
        "version": VERSION,
        "fbeta": fbeta.__version__,
        **model.facts(),
        "calibration": {"slope": model.calibration.slope, "offset": model.calibration.offset},
        "scorer": model.scorer.about(),
        "encoder": model.encoder.to_dict(),
        "provenance": dict(model.provenance),
    }
    text = json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False)
    return seal({ABOUT: text.encode(), **model.scorer.files()})


def seal(members: dict[str, bytes]) -> bytes:
    """A zip of members as they stand, with its own sum at the end.

    >>> seal({"a": b"x"}) == seal({"a": b"x"})
    True
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # of 1980: the same model is the same file
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
        archive.comment = _SEAL + b"0" * 64
    body = out.getvalue()[:-_SEALED]
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode()


def from_bytes(data: bytes, path: str) -> Model:
    """The model of a file's content; `path` is for the errors."""

    def refuse(why: str) -> NoReturn:
        raise ArtifactError(f"{path} {why}.")

    if not data:
        refuse(f"is empty: {_AGAIN}")
    if not data.startswith(b"PK\x03\x04"):
        refuse("is no model of fbeta: give the file that `fbeta fit` wrote")
    if data[-_SEALED:-64] != _SEAL:
        ours = ABOUT.encode() in data[:64]
        refuse(f"is truncated: {_AGAIN}" if ours else "is a zip, but no model of fbeta")
    if hashlib.sha256(data[:-_SEALED]).hexdigest().encode() != data[-64:]:
        refuse(f"is damaged, its sum is another: {_AGAIN}")
    try:
        members = _members(data)
        about = _about(members)
    except _DAMAGED as error:
        refuse(f"is damaged ({_short(error)}): {_AGAIN}")
    if about.get("format") != FORMAT or not isinstance(about.get("version"), int):
        refuse("is a zip, but no model of fbeta")
    if about["version"] > VERSION:
        refuse(
            f"was written by a newer fbeta ({about.get('fbeta')!s:.20}, format {about['version']}, and this one reads "
            f"up to {VERSION}): upgrade fbeta"
        )
    try:
        metric = read_metric(str(about["metric"]))
    except (KeyError, ValueError, TypeError) as error:
        refuse(f"names a metric that is not known here ({_short(error)}): import the module that defines it")
    try:
        return _model(about, members, metric)
    except _DAMAGED as error:
        refuse(f"is damaged ({_short(error)}): {_AGAIN}")


#: What reading made-up files can raise.
_DAMAGED = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, RuntimeError, OverflowError, struct.error,
    zipfile.BadZipFile, OSError,
)  # fmt: skip


def _short(error: BaseException) -> str:
    said = str(error).splitlines() or [type(error).__name__]
    return (f"no {said[0]}" if isinstance(error, KeyError) else said[0]).rstrip(".")[:160]


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
            raise ValueError("its members are compressed")
        if sum(info.file_size for info in infos) > len(data):
            raise ValueError("its members are larger than the file")
        found = {info.filename: archive.read(info) for info in infos}
    if len(found) < len(infos):
        raise ValueError("it has two members of one name")
    return found


def _about(members: dict[str, bytes]) -> dict[str, Any]:
    about = json.loads(members[ABOUT].decode(), parse_constant=_no_number)
    if not isinstance(about, dict):
        raise ValueError(f"{ABOUT} is no object")
    return about


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _model(about: dict[str, Any], members: dict[str, bytes], metric: Any) -> Model:
    from fbeta.tables import Encoder

    expected = {ABOUT, *scorers.names(about["scorer"])}
    if set(members) != expected:
        lacking, more = sorted(expected - set(members)), sorted(set(members) - expected)
        raise ValueError(f"it lacks {', '.join(lacking)}" if lacking else f"nobody knows its {more[0]!r:.60}")
    encoder = Encoder.from_dict(about["encoder"])
    calibration = Platt(float(about["calibration"]["slope"]), float(about["calibration"]["offset"]))
    cut = Threshold.from_dict(about["cut"])
    if not (
        math.isfinite(calibration.slope) and math.isfinite(calibration.offset) and calibration.slope >= 0
    ):
        raise ValueError("its calibration is no rising line")
    if math.isnan(float(cut.value)):
        raise ValueError("its cut is no number")
    texts = [about[name] for name in ("target", "positive", "model", "loss")]
    negative = tuple(about["negative"])
    if not all(isinstance(x, str) for x in (*texts, *negative)) or not negative:
        raise ValueError("its classes are no texts")
    target, positive, model, loss = texts
    return Model(
        encoder,
        scorers.read(about["scorer"], members),
        calibration,
        cut,
        metric,
        target,
        positive,
        negative,
        model,
        loss,
        dict(about["provenance"]),
    )
