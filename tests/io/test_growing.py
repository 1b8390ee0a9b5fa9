from __future__ import annotations

import os
from pathlib import Path

import pytest

from aloof.io import growing
from aloof.io.growing import GrowingFile, PipedLines, Position


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def read(file: GrowingFile, looks: int = 4) -> list[str]:
    return [line.content.decode() for _ in range(looks) for line in file.lines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_a_line_comes_when_its_end_does(path: Path) -> None:
    file = GrowingFile(path)
    assert read(file) == []  # it does not exist yet
    add(path, "one\r\ntwo\nthr")
    assert read(file) == ["one", "two"]
    add(path, "ee")
    assert read(file) == []
    add(path, "\n\nfour\n")
    assert read(file) == ["three", "", "four"]
    file.close()


def test_a_renamed_file_is_read_to_its_end_and_then_the_new_one(path: Path) -> None:
    file = GrowingFile(path)
    add(path, "one\n")
    assert read(file) == ["one"]
    moved = path.rename(path.with_name("log.1"))
    add(moved, "two\n")  # the writer has not noticed yet
    assert read(file) == ["two"]
    add(moved, "half")
    add(path, "three\n")
    assert read(file) == ["half", "three"]
    assert ["renamed" in words for words in file.news()] == [True]
    file.close()


@pytest.mark.parametrize("more", ["x\n", "a longer first line than before\nand a second\n"])
def test_a_file_that_is_cut_begins_anew(path: Path, more: str) -> None:
    file = GrowingFile(path)
    add(path, "one\ntwo\n")
    assert read(file) == ["one", "two"]
    path.write_text(more)  # the same inode; longer than before in one case
    assert read(file) == more.splitlines()
    assert "was cut" in file.news()[0]
    file.close()


def test_a_position_leads_back_through_renamed_files(path: Path) -> None:
    add(path, "one\ntwo\n")
    first = GrowingFile(path)
    positions = [line.after for line in first.lines()]
    first.close()
    moved = path.rename(path.with_name("log.1"))
    add(moved, "three\n")
    os.utime(moved, (1, 1))
    add(path, "four\n")
    later = path.rename(path.with_name("log.2"))
    os.utime(later, (2, 2))
    add(path, "five\n")
    for position, expected in zip(positions, (["two"], []), strict=True):
        assert position is not None
        again = GrowingFile(path, Position(**position.as_dict()))
        assert read(again, 8) == [*expected, "three", "four", "five"]
        again.close()


def test_a_position_in_a_file_that_is_gone_says_so(path: Path) -> None:
    add(path, "one\ntwo\n")
    first = GrowingFile(path)
    position = first.lines()[-1].after
    first.close()
    path.write_text("other\n")  # written over while nobody looked
    again = GrowingFile(path, position)
    assert read(again) == ["other"]
    assert "may be" in again.news()[0]
    again.close()


def test_a_line_without_an_end_is_given_at_some_length(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "_LONGEST", 10)
    file = GrowingFile(path)
    add(path, "0123456789ab")
    assert read(file) == ["0123456789ab"]
    add(path, "\nnext\n")
    assert read(file) == ["", "next"]
    file.close()


def test_the_last_line_of_a_pipe_needs_no_end() -> None:
    reading, writing = os.pipe()
    lines = PipedLines(reading, patience=0.01)
    assert lines.lines() == []
    os.write(writing, b"one\ntw")
    assert [line.content for line in lines.lines()] == [b"one"]
    assert not lines.has_ended
    os.write(writing, b"o")
    os.close(writing)
    assert lines.lines() == []
    assert [line.content for line in lines.lines()] == [b"two"]
    assert lines.has_ended
    os.close(reading)
