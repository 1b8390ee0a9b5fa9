"""Check the figures in README.md and docs/ against the records in results/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aloof.bench.claims import Evidence, check, corrected, documents
from aloof.exceptions import ExperimentError
from aloof.io import write_file
from aloof.phrases import count


def main() -> int:
    """Print what is wrong, a line each; return 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="*", type=Path, help="default: README.md and docs/")
    parser.add_argument("--results", type=Path, default=Path("results"), help="the records")
    parser.add_argument(
        "--write", action="store_true", help="write what the records say into the documents"
    )
    options = parser.parse_args()
    paths = options.documents or documents(Path())
    evidence = Evidence(options.results)
    wrong = 0
    for path in paths:
        if options.write:
            write_file(path, corrected(path, evidence), ExperimentError)
        for finding in check(path, evidence):
            print(finding)
            wrong += 1
    print(
        f"{count(wrong, 'problem')} with figures in {count(len(paths), 'document')}.",
        file=sys.stderr,
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
