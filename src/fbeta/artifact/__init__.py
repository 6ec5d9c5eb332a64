"""A fitted model as one file: what it learned, how it decides, where it comes from. Nothing is executed on load."""

try:
    import polars as _polars  # noqa: F401
    import safetensors as _safetensors  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("fbeta.artifact needs polars and safetensors: pip install 'fbeta[compare]'") from error

from fbeta.artifact.model import ArtifactError, Model
from fbeta.artifact.model_file import load, save
from fbeta.artifact.predicting import Predicted, predict
from fbeta.writing import check_output

__all__ = ["ArtifactError", "Model", "Predicted", "check_output", "load", "predict", "save"]
