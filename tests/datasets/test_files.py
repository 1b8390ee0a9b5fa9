from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from aloof.datasets import cache_folder, find_dataset, load_dataset, no_downloads
from aloof.exceptions import DatasetError, MissingExtraError


def dataset_path(name: str) -> Path:
    return find_dataset(name).path


def fetch(name: str) -> Path:
    find_dataset(name).check()
    return dataset_path(name)


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_download_is_cached_and_asked_for_once(register, server, content, folders) -> None:
    server.files["/tiny.mat"] = content
    register(f"{server.url}/tiny.mat")
    assert not dataset_path("tiny").exists()
    path = fetch("tiny")
    assert path == dataset_path("tiny") == folders / "cache" / "aloof" / "odds" / "tiny.mat"
    assert path.read_bytes() == content
    assert load_dataset("tiny").known
    assert server.asked == ["/tiny.mat"]
    assert files_under(folders) == [path]
    (folders / "other").touch()
    assert path.stat().st_mode == (folders / "other").stat().st_mode


def test_without_downloads_only_what_is_here_is_read(register, server, content) -> None:
    server.files["/tiny.mat"] = content
    register(f"{server.url}/tiny.mat")
    with pytest.raises(DatasetError, match="aloof data get tiny"), no_downloads():
        fetch("tiny")
    assert server.asked == []
    fetch("tiny")
    with no_downloads():
        assert load_dataset("tiny").known


def test_the_next_address_is_tried(register, server, closed_port, content) -> None:
    server.files.update({"/other.mat": b"an error page", "/good.mat": content})
    register(
        f"{closed_port}/tiny.mat",
        f"{server.url}/gone.mat",
        f"{server.url}/other.mat",
        f"{server.url}/good.mat",
    )
    assert fetch("tiny").read_bytes() == content
    assert server.asked == ["/gone.mat", "/other.mat", "/good.mat"]


def test_a_hash_mismatch_is_an_error_and_nothing_stays(
    register, server, content, folders
) -> None:
    server.files["/tiny.mat"] = content[:-1] + bytes([content[-1] ^ 1])
    entry = register(f"{server.url}/tiny.mat")
    with pytest.raises(DatasetError, match="hash mismatch") as caught:
        fetch("tiny")
    assert entry.files[0].sha256[1] in str(caught.value)
    assert "nothing was kept" in str(caught.value)
    assert files_under(folders) == []


def test_a_download_that_breaks_off_leaves_nothing(register, server, content, folders) -> None:
    server.files["/tiny.mat"] = content[:100]
    server.promised = len(content) - 100
    register(f"{server.url}/tiny.mat")
    with pytest.raises(DatasetError, match=r"Could not download(.|\n)*100 bytes"):
        fetch("tiny")
    assert files_under(folders) == []


def test_offline_says_what_to_do(register, closed_port, folders) -> None:
    register(f"{closed_port}/tiny.mat")
    with pytest.raises(DatasetError) as caught:
        fetch("tiny")
    message = str(caught.value)
    assert f"{closed_port}/tiny.mat: Connection refused" in message
    for advice in ("https://example.org/tiny", "odds/tiny.mat", "ALOOF_DATA"):
        assert advice in message
    assert files_under(folders) == []


def test_an_http_error_is_named(register, server) -> None:
    register(f"{server.url}/gone.mat")
    with pytest.raises(DatasetError, match="HTTP 404"):
        fetch("tiny")


def test_a_damaged_file_in_the_cache_is_replaced(register, server, content, caplog) -> None:
    server.files["/tiny.mat"] = content
    register(f"{server.url}/tiny.mat")
    fetch("tiny").write_bytes(content[:50])
    with caplog.at_level(logging.WARNING):
        assert fetch("tiny").read_bytes() == content
    assert "not a known file of tiny" in caplog.text
    assert len(server.asked) == 2


def test_a_damaged_file_in_the_cache_is_not_used_offline(
    register, server, closed_port, content
) -> None:
    server.files["/tiny.mat"] = content
    register(f"{server.url}/tiny.mat")
    fetch("tiny").write_bytes(content[:50])
    register(f"{closed_port}/tiny.mat")
    with pytest.raises(DatasetError, match="Could not download"):
        load_dataset("tiny")


def test_a_cache_that_cannot_be_written_is_named(
    register, server, content, folders, monkeypatch
) -> None:
    server.files["/tiny.mat"] = content
    register(f"{server.url}/tiny.mat")
    (folders / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folders / "file"))
    with pytest.raises(DatasetError, match=r"cannot be written: .*XDG_CACHE_HOME"):
        fetch("tiny")


def test_without_pooch_a_download_names_the_extra(register, server, monkeypatch) -> None:
    register(f"{server.url}/tiny.mat")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"odds/tiny\.mat needs pooch.*aloof\[data\]"):
        fetch("tiny")
    assert server.asked == []


def test_aloof_data_comes_first_and_nothing_is_downloaded(
    local, server, register, content, folders
) -> None:
    register(f"{server.url}/tiny.mat")
    path = local(content)
    assert fetch("tiny") == dataset_path("tiny") == path
    assert server.asked == []
    assert files_under(folders) == [path]


def test_an_empty_aloof_data_is_none(register, content, monkeypatch) -> None:
    register()
    monkeypatch.setenv("ALOOF_DATA", "")
    assert dataset_path("tiny").is_relative_to(cache_folder())


def test_a_file_missing_in_aloof_data_is_named(local) -> None:
    with pytest.raises(DatasetError, match=r"odds/tiny\.mat cannot be read there") as caught:
        load_dataset("tiny")
    assert "https://example.org/tiny" in str(caught.value)
    assert "unset ALOOF_DATA" in str(caught.value)


@pytest.mark.parametrize("function", [find_dataset, load_dataset])
def test_a_wrong_name_is_an_error_everywhere(function) -> None:
    with pytest.raises(DatasetError, match="did you mean 'thyroid'"):
        function("thyriod")


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", ".cache/aloof"),
        ("darwin", "Library/Caches/aloof"),
        ("win32", "AppData/Local/aloof/Cache"),
    ],
)
def test_the_cache_is_where_the_system_keeps_caches(
    platform: str, expected: str, monkeypatch, tmp_path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == tmp_path / expected
