"""How a command ends: 0 is fine, 2 is bad input and one sentence, 130 is Ctrl-C; a traceback is a bug."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import typer

from fbeta.writing import WriteError


def stop(sentence: str, code: int = 2) -> NoReturn:
    """Say one sentence and end."""
    typer.echo(f"fbeta: {' '.join(sentence.split())}", err=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def answering(interrupted: str = "stopped; nothing was written.") -> Iterator[None]:
    """Turn what can go wrong with input and output into a sentence."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(err=True)  # the terminal shows ^C
        stop(interrupted, 130)
    except BrokenPipeError:
        _let_go()
        raise typer.Exit(0) from None  # whoever reads our output has enough
    except OSError as error:
        _let_go()
        verb = "write" if isinstance(error, WriteError) or error.filename is None else "read"
        stop(f"cannot {verb} {error.filename or 'the output'}: {error.strerror or error}.")
    except (ValueError, ImportError) as error:
        stop(str(error))
    except RuntimeError as error:
        from fbeta.data import DataError

        if not isinstance(error, DataError):
            raise
        stop(str(error))


def echo_json(data: Any) -> None:
    """Print data for machines, and nothing else."""
    typer.echo(json.dumps(data, indent=1, ensure_ascii=False))


def _let_go() -> None:
    """What a full disk did not take must not be tried again when Python ends, with a traceback."""
    with contextlib.suppress(OSError, io.UnsupportedOperation, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
