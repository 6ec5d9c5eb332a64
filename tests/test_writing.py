"""Files that are there whole or not at all."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fbeta.writing import OutputError, check_output, replacing, write

OLD = b"old\n"


@pytest.fixture(params=["as the system has them", "with names"])
def file(request, tmp_path, monkeypatch):
    """A file, on a system that knows files without a name, and on one that does not."""
    if request.param == "with names":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "file"
    path.write_bytes(OLD)
    return path


def names(path):
    return sorted(x.name for x in path.parent.iterdir())


def test_a_file_is_replaced(file):
    write(file, b"new\n")
    assert file.read_bytes() == b"new\n"
    assert names(file) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(file, error):
    def half():
        with replacing(file) as part:
            part.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        half()
    assert file.read_bytes() == OLD
    assert names(file) == ["file"]


def test_a_name_that_cannot_be_taken_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder") as caught:
        write(tmp_path / "folder", b"new")
    assert caught.value.filename == str(tmp_path / "folder")  # not the hidden one
    assert names(tmp_path / "folder") == ["folder"]


def test_a_link_stays_one(file):
    link = file.with_name("link")
    link.symlink_to(file)
    write(link, b"new\n")
    assert link.is_symlink()
    assert file.read_bytes() == b"new\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write(pipe, b"new\n")
    assert reader.communicate()[0] == b"new\n"
    assert pipe.is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(file):
    """A real limit on file sizes ends the write in the middle, as a full disk does."""
    code = f"""
import resource
from pathlib import Path
from fbeta.writing import write
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write(Path({str(file)!r}), b"x" * 5000)
except OSError as error:
    print(error.strerror)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "File too large\n"
    assert file.read_bytes() == OLD
    assert names(file) == ["file"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
def test_a_kill_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "file").write_bytes(OLD)
    code = f"""
import sys
from pathlib import Path
from fbeta.writing import replacing
with replacing(Path({str(tmp_path / "file")!r})) as part, part.open("wb", buffering=0) as stream:
    stream.write(b"half")
    print("written", flush=True)
    sys.stdin.read()
"""
    worker = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdout.readline() == b"written\n"
    worker.kill()
    worker.communicate()
    assert (tmp_path / "file").read_bytes() == OLD
    assert names(tmp_path / "file") == ["file"]


def test_the_mode_is_that_of_the_file_before_or_of_any_new_file(file):
    file.chmod(0o640)
    (usual := file.with_name("usual")).touch()
    write(file, b"new\n")
    write(new := file.with_name("new"), b"new\n")
    modes = [path.stat().st_mode & 0o777 for path in (file, new)]
    assert modes == [0o640, usual.stat().st_mode & 0o777]


def test_a_name_as_long_as_names_can_be(file):
    write(long := file.with_name("x" * 255), b"new\n")
    assert long.read_bytes() == b"new\n"


def test_an_output_that_cannot_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("nowhere").symlink_to("no/such/file")
    Path("data").write_bytes(OLD)
    Path("link").symlink_to("data")
    os.link("data", "hard")
    with socket.socket(socket.AF_UNIX) as there:
        there.bind("socket")
    for name, words in (
        ("loop", "its links lead in a circle"),
        ("nowhere", f"there is no folder {tmp_path}/no/such"),
        ("data/file", "there is no folder data"),
        (".", "it is a folder"),
        ("socket", "it is no plain file"),
        ("x" * 300, "File name too long"),
        *((name, "would be lost") for name in ("data", "./data", f"{tmp_path}/data", "link", "hard", "new")),
    ):
        with pytest.raises(OutputError, match=f"cannot write .*: .*{words}"):
            check_output(name, "data", None, "new")  # one that is there, and one that another output is going to be
    Path("late").symlink_to("later")
    assert check_output("late", "data") == Path("late")
    assert check_output("/dev/null") == Path("/dev/null")


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_an_output_without_a_buffer_is_written_whole_or_an_error(tmp_path):
    """A write to it may take a part only: the rest is written, too, or the error is raised."""
    code = """
import io, resource, sys
from fbeta.writing import buffered
assert isinstance(sys.stdout.buffer, io.RawIOBase)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with buffered(sys.stdout.buffer) as stream:
        stream.write(b"x" * int(sys.argv[1]))
except OSError as error:
    print(error.strerror, file=sys.stderr)
sys.stdout.write("y")
"""
    for size, kept, said in ((900, 901, ""), (5000, 1000, "File too large\n")):
        with open(tmp_path / "out", "wb") as out:
            done = subprocess.run([sys.executable, "-u", "-c", code, str(size)], stdout=out, stderr=-1, text=True)
        assert (done.stderr[: len(said)], (tmp_path / "out").stat().st_size) == (said, kept)
