"""Results kept line by line, so that an interrupt loses at most the line in flight.

A journal is a JSONL file: the first line holds the settings that decide the results, every other line one result with
its ``key``. A line cut short by a kill is dropped when the file is opened again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama.writer import first_difference, replace_file


class Journal:
    """Results by key in one file, new or left unfinished by an earlier run with the same ``settings``.

    Raises InputError: the file holds something else, was made with other settings (the first that differs is named),
    or cannot be written.
    """

    def __init__(self, file: Path, settings: Mapping[str, Any]) -> None:
        self._file = file
        wanted = json.loads(json.dumps(dict(settings)))
        self.results: dict[str, dict[str, Any]] = {}
        """What is done, by key, in the order of the file."""
        try:
            text = file.read_bytes() if file.exists() else b""
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror or error}; choose another file") from error
        whole, _, _ = text.rpartition(b"\n")
        lines = [_read(file, number, line) for number, line in enumerate(whole.splitlines(), 1)]
        if text and (not lines or "settings" not in lines[0]):
            raise InputError(f"{file} is no journal of results: choose another file")
        if lines:
            different = first_difference(lines[0]["settings"], wanted)
            if different:
                raise InputError(
                    f"{file} was made with other settings: {different}; repeat them, or choose another file"
                )
            self.results = {str(line["key"]): line for line in lines[1:]}
            if len(text) > len(whole) + 1:  # the line that a kill cut short
                replace_file(file, whole + b"\n")
        else:
            replace_file(file, (json.dumps({"settings": wanted}) + "\n").encode())

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Append one result; on disk when this returns."""
        entry = {"key": key, **result}
        line = json.dumps(entry, allow_nan=False)
        try:
            with self._file.open("ab") as handle:
                handle.write(line.encode() + b"\n")
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise InputError(
                f"cannot write {self._file}: {error.strerror or error}; what it holds is kept: "
                "make room, and run the same command again"
            ) from error
        self.results[key] = json.loads(line)


def _read(file: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise InputError(f"{file} line {number} is not JSON ({error}); choose another file") from error
    if not isinstance(entry, dict) or (number > 1 and "key" not in entry):
        raise InputError(f"{file} line {number} is no result; choose another file")
    return entry
