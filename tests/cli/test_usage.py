"""What is said about a command line that is wrong: one line, and where to read more."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from aloof.cli.app import app


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit train.csv", "Missing option '--out'. See: aloof fit --help"),
        ("threshold", "Missing argument 'MODEL'. See: aloof threshold --help"),
        ("fit good bad --out model", "unexpected extra argument(s) (bad). See: aloof fit"),
        ("bench odds --sed 1", "--seeds). See: aloof bench odds --help"),
        ("bench ods", "no command 'ods'; did you mean 'odds'?"),
        ("--verbos", "No such option: --verbos"),
    ],
)
def test_bad_usage_is_one_line(words: str, said: str) -> None:
    result = CliRunner().invoke(app, words.split(), prog_name="aloof")
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.startswith("aloof: ")
    assert said in line


def test_a_group_without_a_command_shows_its_help() -> None:
    for words in ([], ["bench"]):
        result = CliRunner().invoke(app, words)
        assert "Commands" in result.output
        assert "See: " not in result.output
