"""A file is written whole or not at all, whatever writes it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from aloof.exceptions import CheckpointError, DatasetError
from aloof.io import replacing, write_file, writing
from aloof.io.tensors import parse_tensors, save_tensors


@pytest.mark.parametrize(
    "content", ["Zürich", "Zürich".encode(), lambda path: path.write_text("Zürich", "utf-8")]
)
def test_text_bytes_and_writers(content: Any, tmp_path: Path) -> None:
    target = tmp_path / "a" / "file"
    with pytest.raises(DatasetError, match=r"a/file cannot be written: No such file"):
        write_file(target, content, DatasetError)
    write_file(target, content, DatasetError, parents=True)
    write_file(target, content, DatasetError, sync=False)  # in place of the first
    assert target.read_text("utf-8") == "Zürich"
    assert os.listdir(target.parent) == ["file"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_content(
    failure: BaseException, tmp_path: Path
) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise failure

    expected = DatasetError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        write_file(target, fail, DatasetError, advice="Buy a disk.")
    if isinstance(failure, OSError):
        assert str(caught.value) == f"{target} cannot be written: No space left. Buy a disk."
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_write_that_is_killed_leaves_the_old_content(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    script = """
import os, sys
from pathlib import Path
from aloof.exceptions import DatasetError
from aloof.io import write_file

def die(path):
    path.write_text("half")
    os._exit(9)

write_file(Path(sys.argv[1]), die, DatasetError)
"""
    done = subprocess.run([sys.executable, "-c", script, str(target)])
    assert done.returncode == 9
    assert target.read_text() == "old"


def test_a_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with replacing(target, DatasetError) as aside:
        aside.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    with pytest.raises(OSError, match="input"), replacing(target, DatasetError):
        raise OSError(5, "input")  # of the block itself: not about writing
    with pytest.raises(DatasetError, match="cannot be written"):
        with replacing(target, DatasetError):
            pass  # wrote nothing
    assert target.read_text() == "new"


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with replacing(tmp_path / "folder", DatasetError) as aside:
        aside.mkdir()
        (aside / "one").write_text("1")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["one"]

    def fail() -> None:
        with replacing(tmp_path / "other", DatasetError) as aside:
            aside.mkdir()
            (aside / "one").write_text("1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_the_umask_says_who_may_read(tmp_path: Path) -> None:
    """A model, a picture of tensors, text, and in the place of what was closed to others."""
    script = """
import os, sys
from pathlib import Path
import numpy as np, torch
from aloof import VAE
from aloof.exceptions import DatasetError
from aloof.io import write_file
from aloof.io.tensors import save_tensors

X = np.random.default_rng(0).normal(size=(40, 2))
model = VAE(n_members=1, max_epochs=1, hidden=(4,)).fit(X)
for umask in ("022", "077"):
    here = Path(sys.argv[1]) / umask
    here.mkdir()
    os.umask(int(umask, 8))
    old = here / "text"
    old.write_text("old")
    old.chmod(0o600)
    write_file(old, "new", DatasetError)
    save = lambda path: save_tensors(path, {"a": torch.ones(2)})
    write_file(here / "tensors", save, DatasetError)
    model.save(here / "model")
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    for umask, file, folder in (("022", 0o644, 0o755), ("077", 0o600, 0o700)):
        here = tmp_path / umask
        found = {
            path.relative_to(here).as_posix(): stat.S_IMODE(path.stat().st_mode)
            for path in here.rglob("*")
        }
        assert found == {
            "text": file,
            "tensors": file,
            "model": folder,
            "model/model.safetensors": file,
            "model/manifest.json": file,
        }


def test_a_reader_that_left_is_no_fault() -> None:
    with pytest.raises(BrokenPipeError), writing("-", DatasetError):
        raise BrokenPipeError


def test_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laid out in any way; a full disk is an error of the system, by whatever name."""
    import safetensors.torch

    target, tensors = tmp_path / "file", {"a": torch.arange(6.0).reshape(2, 3).T}
    write_file(target, lambda path: save_tensors(path, tensors, {"k": "v"}), CheckpointError)
    assert torch.equal(parse_tensors(target.read_bytes())["a"], tensors["a"])

    def full(*_: Any) -> None:
        raise safetensors.SafetensorError("No space left on device")

    before = target.read_bytes()
    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(CheckpointError, match=f"{target} cannot be written: No space left"):
        write_file(target, lambda path: save_tensors(path, {}), CheckpointError)
    assert target.read_bytes() == before
    with pytest.raises(ValueError, match="header"):
        parse_tensors(b"no tensors")
