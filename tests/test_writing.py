"""Files that are there whole or not at all."""

import os
import subprocess
import sys

import pytest

from fbeta.writing import replacing, write

OLD = b"old\n"


@pytest.fixture
def file(tmp_path):
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


def test_a_kill_leaves_the_old_file_and_at_most_a_hidden_one(file):
    code = f"""
import time
from pathlib import Path
from fbeta.writing import replacing
with replacing(Path({str(file)!r})) as part, part.open("wb", buffering=0) as stream:
    stream.write(b"half")
    print("written", flush=True)
    time.sleep(60)
"""
    worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert worker.stdout.readline() == b"written\n"
    worker.kill()
    worker.communicate()
    assert file.read_bytes() == OLD
    left = names(file)
    assert len(left) == 2
    assert left[0].startswith(".file.")
    write(file, b"new\n")  # what is left is in nobody's way
    assert file.read_bytes() == b"new\n"
