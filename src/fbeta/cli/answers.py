"""How a command ends: 0 is fine, 2 is bad input and one sentence, 130 is Ctrl-C; a traceback is a bug."""

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import IO, Any, NoReturn

import typer

from fbeta.writing import WriteError


def prepare() -> None:
    """Prepare the process: all streams are open, output is written whole, and SIGTERM ends it as Ctrl-C does."""
    while (free := os.open(os.devnull, os.O_RDWR)) < 3:
        pass  # else a file of ours gets the number of a closed stream, and whatever a library prints there
    os.close(free)
    if sys.stdout is None:
        typer.echo("fbeta: the standard output is closed: send it to a file, or to /dev/null.", err=True)
        sys.exit(2)
    if isinstance(sys.stdout.buffer, io.RawIOBase):  # python -u: a write may be partial, without an error
        whole, how = io.BufferedWriter(sys.stdout.buffer), (sys.stdout.encoding, sys.stdout.errors)
        sys.stdout = io.TextIOWrapper(whole, *how, line_buffering=True)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup's stays
            signal.signal(number, signal.default_int_handler)  # as Ctrl-C


@contextlib.contextmanager
def despite_closed(err: bool = False) -> Iterator[None]:
    """Go on although the reader of the output has closed it, as `head` does: there may still be files to write.

    With `err` it is the error stream, which may also be lost to a full disk: the exit status says enough.
    """
    try:
        yield
    except OSError as error:
        if not err and not isinstance(error, BrokenPipeError):
            raise
        _discard(sys.stderr if err else sys.stdout)
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):  # rich ends the program
            raise
        _discard(sys.stdout)


def say(*lines: str, err: bool = False) -> None:
    """Print lines, in which there may be names from the data."""
    from fbeta.numerals import clean

    with despite_closed(err):
        typer.echo("\n".join(map(clean, lines)), err=err)


def stop(sentence: str, code: int = 2) -> NoReturn:
    """Say one sentence and end."""
    say(f"fbeta: {' '.join(sentence.split())}", err=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def answering(interrupted: str = "stopped; nothing was written.") -> Iterator[None]:
    """Turn what can go wrong with input and output into a sentence."""
    try:
        yield
    except KeyboardInterrupt:
        say("", err=True)  # the terminal shows ^C
        stop(interrupted, 130)
    except BrokenPipeError:
        _discard(sys.stdout)
        raise typer.Exit(0) from None  # the reader of our output has closed it
    except OSError as error:
        _discard(sys.stdout)
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
    echo_json_text(json.dumps(data, indent=1, ensure_ascii=False))


def echo_json_text(text: str) -> None:
    """Print JSON; control characters, and halves of characters that no file can hold, are escaped."""
    from fbeta.numerals import clean

    with despite_closed():
        typer.echo("\n".join(clean(line, lambda letter: json.dumps(letter)[1:-1]) for line in text.split("\n")))


def _discard(stream: IO[str]) -> None:
    """Discard what is still buffered: writing it again when Python ends would fail with a traceback."""
    with contextlib.suppress(OSError, io.UnsupportedOperation, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
