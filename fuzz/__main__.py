"""``python -m fuzz FILE ...``: run recorded cases again; exit status 1 where one still fails."""

from __future__ import annotations

import sys
import traceback

from fuzz import corpus
from resispec_core.errors import InputError


def main(paths: list[str]) -> int:
    status = 0
    for path in paths or [str(path) for path in corpus.files()]:
        try:
            name, case = corpus.read(path)
        except InputError as error:
            print(f"python -m fuzz: {error}", file=sys.stderr)
            return 2
        try:
            corpus.load(name).check(case)
            print(f"passes  {path}")
        except Exception:
            status = 1
            print(f"FAILS   {path}\n{traceback.format_exc()}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
