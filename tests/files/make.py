"""Makes the files of this folder, each with a statement of what must be understood.

``python tests/files/make.py`` writes ``NAME`` and ``NAME.json`` beside each other. A statement
holds the values that were written, so that reading them back can be compared with the truth.
What the files hold is said by idea in ``*_files.py``, in the words of `stating`.

In a statement:

- ``says``: what the file is, in a sentence
- ``options``: what the user says, as for `aloof.fit`
- ``understood``: parts of what must be said about the file
- ``columns``: kind, values (null for gaps), unit, and parts of what must be said about each
- ``left_out``: what columns that are not used are called
- ``warns``: parts of warnings
- ``asks``: parts of the question that must be asked
- ``refuses``: parts of the error
- ``cells``: of a workbook, which the test makes
"""

from __future__ import annotations

import json
from pathlib import Path

from calendar_files import calendars
from code_files import codes
from json_files import jsons
from layout_files import layouts
from locale_files import locales
from sign_files import signs
from stating import FILES
from workbook_files import workbooks

HERE = Path(__file__).parent


def make(folder: Path) -> None:
    """Write all files and their statements."""
    for name, (content, statement) in FILES.items():
        if content is not None:
            (folder / name).write_bytes(content)
        text = json.dumps(statement, ensure_ascii=False, separators=(", ", ": "))
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf8")


for part in (locales, signs, calendars, codes, layouts, workbooks, jsons):
    part()

if __name__ == "__main__":
    make(HERE)
    print(len(FILES), "files")
