"""A model's file: a sealed zip of JSON, and weights as safetensors or in the booster's own format."""

import json
from pathlib import Path
from typing import Any, NoReturn

import fbeta
from fbeta.artifact.model import ArtifactError, Model
from fbeta.decisions import Decision
from fbeta.learners import Learner, models
from fbeta.learners.ensemble import read_scorer
from fbeta.metrics import Custom, as_metric
from fbeta.plain_data import from_plain
from fbeta.sealed import DAMAGED, LARGEST, in_short, read_json, seal, unseal
from fbeta.tables import Encoder
from fbeta.tables.errors import absent
from fbeta.writing import check_output, is_stdout, write

FORMAT, VERSION = "fbeta model", 2
ABOUT = "model.json"
_AGAIN = "copy it again, or fit the model again"


def save(model: Model, path: Path | str) -> None:
    """Write a model to one file, whole or not at all.

    >>> import tempfile
    >>> from fbeta.comparison.run import fit
    >>> path = Path(tempfile.mkdtemp(), "model.fbeta")
    >>> save(fit("breast-cancer", models="linear", losses="bce", folds=2), path)
    >>> load(path).target
    'diagnosis'
    """
    path = check_output(path)
    write(path, to_bytes(model))


def load(path: Path | str) -> Model:
    """Read a model; whatever is wrong with the file is an ArtifactError in one sentence.

    >>> load("nothing.fbeta")
    Traceback (most recent call last):
    fbeta.artifact.model.ArtifactError: there is no file nothing.fbeta: check its name.
    """
    path = Path(path).expanduser()
    try:
        if not path.exists():
            raise ArtifactError(absent(path))
        if not path.is_file():
            what = "a folder, not a model file" if path.is_dir() else "no plain file"
            raise ArtifactError(f"{path} is {what}.")
        if is_stdout(path):
            raise ArtifactError(f"{path} is where the standard output goes, and would be lost: send that elsewhere.")
        if path.stat().st_size > LARGEST:
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
    about = {"format": FORMAT, "version": VERSION, "fbeta": fbeta.__version__, **model.facts()}
    del about["cut"], about["columns"]  # the decision and the encoder hold them
    about["decision"] = model.decision.to_dict()
    about["encoder"] = model.encoder.to_dict()
    about["scorer"] = model.scorer.about()
    text = json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False)
    return seal({ABOUT: text.encode(), **model.scorer.files()})


def from_bytes(data: bytes, path: str) -> Model:
    """The model of a file's content; `path` is for the errors."""

    def refuse(why: str) -> NoReturn:
        raise ArtifactError(f"{path} {why}.")

    if data and not data.startswith(b"PK\x03\x04"):
        refuse("is no model of fbeta: give the file that `fbeta fit` wrote")
    if data and b"sha256:" not in data[-80:] and ABOUT.encode() not in data[:64]:
        refuse("is a zip, but no model of fbeta")
    try:
        members = unseal(data)
    except ValueError as error:
        refuse(f"{error}: {_AGAIN}")
    try:
        about = read_json(members[ABOUT])
    except DAMAGED as error:
        refuse(f"is damaged ({in_short(error)}): {_AGAIN}")
    version = about.get("version")
    if about.get("format") != FORMAT or not isinstance(version, int):
        refuse("is a zip, but no model of fbeta")
    reads = f"format {version!s:.20}, and this one reads {VERSION}"
    if version > VERSION:
        refuse(f"was written by a newer fbeta ({about.get('fbeta')!s:.20}, {reads}): upgrade fbeta")
    if version < VERSION:
        refuse(f"was written by an older fbeta ({reads}): fit the model again")
    try:
        metric = as_metric(str(about["metric"]))
    except (KeyError, ValueError, TypeError) as error:
        refuse(f"names a metric that is not known here ({in_short(error)}): import the module that defines it")
    try:
        learner = models.get(str(about.get("model")))
    except ValueError as error:
        refuse(f"cannot be used here: {in_short(error)}")
    try:
        return _model(about, members, metric, learner)
    except DAMAGED as error:
        refuse(f"is damaged ({in_short(error)}): {_AGAIN}")


def _model(about: dict[str, Any], members: dict[str, bytes], metric: Any, learner: Learner) -> Model:
    files = {name: data for name, data in members.items() if name != ABOUT}
    decision = Decision.from_dict(about["decision"])
    if decision.several:
        raise ValueError("its decision is of several columns")
    texts = {name: about[name] for name in ("target", "positive", "model", "loss")}
    negative = from_plain(tuple[str, ...], about["negative"], "negative")
    if not negative or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("its classes are no texts")
    if texts["positive"] in negative:
        raise ValueError("its positive class is a negative one, too")
    encoder, scorer = Encoder.from_dict(about["encoder"]), read_scorer(learner, about["scorer"], files)
    provenance = dict(about["provenance"])
    return Model(encoder, scorer, decision, metric, negative=negative, provenance=provenance, **texts)
