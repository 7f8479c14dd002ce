"""A run on disk: a manifest, and parts in Parquet that are only ever added.

    run.json                 what was audited and how (kind, schema, identity), when begun, where the store was
    part-00000000.parquet    rows of some positions, all rules of a position together
    problems.json            what the last session could not audit; absent where it could
    run.lock                 held by the one process that writes

A part is written beside its place and renamed into it, whole or not at all, and nothing else says what is done: a
position is done when a part holds it. So a kill at any moment loses what was not yet in a part, which the next session
audits again, and there is no moment at which a row could be counted twice. Deleting a part is safe.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from resispec_core.errors import InputError
from resispec_core.llama.store import LogitsStore
from resispec_core.llama.writer import PARTIAL, first_difference, replace_file
from resispec_core.runs.extras import file_lock, pyarrow
from resispec_core.runs.plan import Plan
from resispec_core.runs.records import schema

KIND, SCHEMA = "resispec-run", 1
MANIFEST, PROBLEMS, LOCK = "run.json", "problems.json", "run.lock"
_PART = re.compile(r"part-(\d{8})\.parquet")
_OWNER = b"resispec_run"


class Run:
    """A run to read, finished or not.

    Cost: opening reads the position of every row, 9 bytes a position and rule in memory.
    Cannot detect: values changed in place within a part that still reads as Parquet.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any], done: npt.NDArray[np.bool_]) -> None:
        self.path = path
        self.manifest = manifest
        """Everything in ``run.json``."""
        self.done = done
        """(positions,) True where a part holds the position."""

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in a folder.

        Raises InputError: no run there, an unknown schema, or a part that is damaged, belongs to another run, holds a
        position twice or not for every rule.
        """
        folder = Path(path)
        manifest = read_manifest(folder)
        return cls(folder, manifest, _done(folder, manifest))

    @property
    def identity(self) -> dict[str, Any]:
        """What decided the rows; see ``Plan.identity``."""
        found: dict[str, Any] = self.manifest["identity"]
        return found

    @property
    def labels(self) -> list[str]:
        """The rules, in the plan's order."""
        return [rule["label"] for rule in self.identity["rules"]]

    @property
    def complete(self) -> bool:
        """Every position of the store is there."""
        return bool(self.done.all())

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What the last session could not audit: ``place``, ``positions`` and ``error`` of each."""
        file = self.path / PROBLEMS
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {file}: {error}; it is safe to delete") from error
        return list(found)

    def table(self, columns: Sequence[str], rule: str | None = None) -> Any:
        """The columns as a pyarrow table in the order of the positions; of one rule, or of all in the plan's order.

        Memory: the columns asked for.
        """
        arrow = pyarrow()
        wanted = list(dict.fromkeys([*columns, "position", "rule"]))
        found = arrow.concat_tables(
            [schema().empty_table().select(wanted)]
            + [_read(file, self.manifest, wanted) for file in parts(self.path)]
        )
        if rule is not None:
            found = found.filter(arrow.compute.equal(found["rule"], rule))
        rank = arrow.compute.index_in(found["rule"], value_set=arrow.array(self.labels))
        ordered = found.append_column("rank", rank).sort_by(
            [("position", "ascending"), ("rank", "ascending")]
        )
        return ordered.select(list(columns))

    def rows_of(self, rule: str, positions: Sequence[int]) -> list[dict[str, Any]]:
        """The whole rows of one rule at a few positions, in the order of the positions."""
        arrow = pyarrow()
        wanted = arrow.array(list(positions), arrow.int64())
        found: list[dict[str, Any]] = []
        for file in parts(self.path):
            part = _read(file, self.manifest, schema().names)
            here = arrow.compute.is_in(part["position"], value_set=wanted)
            own = arrow.compute.and_(here, arrow.compute.equal(part["rule"], rule))
            found += part.filter(own).to_pylist()
        return sorted(found, key=lambda row: row["position"])


class RunWriter:
    """Appends parts to a run, new or left unfinished. Made by ``writing``."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], store: LogitsStore) -> None:
        fresh = {
            "kind": KIND,
            "schema": SCHEMA,
            "identity": json.loads(json.dumps(identity)),  # tuples become lists, as they will when read back
            "begun": {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "store": str(store.path.absolute()),
            },
        }
        if (folder / MANIFEST).exists():
            self.manifest = read_manifest(folder)
            different = first_difference(
                self.manifest["identity"], fresh["identity"], sides=("in the run", "now")
            )
            if different:
                raise InputError(
                    f"{folder} was begun with other settings: {different}; continue it with the settings it was "
                    "begun with, or choose an empty folder"
                )
        else:
            self.manifest = fresh
            foreign = sorted(entry.name for entry in folder.iterdir() if not _ours(entry.name))
            if foreign:
                raise InputError(
                    f"{folder} holds no {MANIFEST} and is not empty ({foreign[0]}): choose an empty folder"
                )
            replace_file(folder / MANIFEST, _json(fresh))
        self._folder = folder
        self._next = 1 + max((int(_number(file)) for file in parts(folder)), default=-1)
        self.done = _done(folder, self.manifest)
        """(positions,) True where a part holds the position."""

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add one part: every rule of one or more positions that no part holds yet.

        Raises InputError when the disk refuses; earlier parts are not touched.
        """
        arrow = pyarrow()
        owner = {_OWNER: _fingerprint(self.manifest).encode()}
        table = arrow.Table.from_pylist(list(rows), schema=schema().with_metadata(owner))
        buffer = io.BytesIO()
        arrow.parquet.write_table(table, buffer, compression="zstd")
        replace_file(self._folder / f"part-{self._next:08d}.parquet", buffer.getvalue())
        self._next += 1
        self.done[[row["position"] for row in rows]] = True

    def note(self, problems: Sequence[Mapping[str, Any]]) -> None:
        """Replace ``problems.json``; remove it where there are none."""
        file = self._folder / PROBLEMS
        if problems:
            replace_file(file, _json(list(problems)))
        else:
            file.unlink(missing_ok=True)


@contextmanager
def writing(folder: str | Path, plan: Plan, store: LogitsStore) -> Iterator[RunWriter]:
    """The only writer of a run, new or continued.

    Raises InputError: another process writes there; the folder holds something else; the run was begun with other
    settings (the first that differs is named); a part is damaged; the disk refuses.
    """
    path = Path(folder)
    pyarrow()
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = file_lock(path / LOCK)
        try:
            lock.acquire()
        except TimeoutError:
            raise InputError(
                f"another process is writing to {path}; wait for it, or choose another folder"
            ) from None
    except OSError as error:
        raise InputError(
            f"cannot write to {path}: {error.strerror or error}; choose another folder"
        ) from error
    try:
        for rest in path.glob(f"*{PARTIAL}"):  # of a session that was killed while it wrote
            rest.unlink()
        yield RunWriter(path, plan.identity(store), store)
    finally:
        lock.release()


def parts(folder: Path) -> list[Path]:
    """The parts of a run, oldest first."""
    return sorted(file for file in folder.iterdir() if _PART.fullmatch(file.name))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check ``run.json``; raises InputError."""
    file = folder / MANIFEST
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{folder} holds no {MANIFEST}: it is no run; make one with `resispec audit --out {folder}`"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read {file}: {error}; restore it, or audit again into another folder"
        ) from error
    if not isinstance(found, dict) or found.get("kind") != KIND or "identity" not in found:
        raise InputError(f'{file} does not say "kind": "{KIND}"; it is no run')
    if found.get("schema") != SCHEMA:
        raise InputError(
            f"{file} has schema {found.get('schema')!r}; this release reads schema {SCHEMA}: audit again with it"
        )
    return found


def _done(folder: Path, manifest: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
    identity = manifest["identity"]
    rules, positions = len(identity["rules"]), int(identity["store"]["positions"])
    done = np.zeros(positions, dtype=np.bool_)
    for file in parts(folder):
        found = _read(file, manifest, ["position"])["position"].to_numpy()
        places, counts = np.unique(found, return_counts=True)
        if places.size and not 0 <= places[0] <= places[-1] < positions:
            raise _broken(file, f"it holds position {places[-1]} of {positions}")
        for wrong, why in (
            (places[done[places]], "a part before it holds that, too"),
            (places[counts != rules], f"not once for each of the {rules} rules"),
        ):
            if wrong.size:
                raise _broken(file, f"it holds position {wrong[0]}: {why}")
        done[places] = True
    return done


def _read(file: Path, manifest: Mapping[str, Any], columns: Sequence[str]) -> Any:
    arrow = pyarrow()
    try:
        with arrow.parquet.ParquetFile(file) as part:
            owner = (part.schema_arrow.metadata or {}).get(_OWNER, b"").decode()
            if owner != _fingerprint(manifest):
                raise _broken(file, "it belongs to another run")
            if not part.schema_arrow.equals(schema()):
                raise _broken(file, "its columns are not those of a run")
            return part.read(columns=list(columns))
    except (arrow.ArrowException, OSError) as error:
        raise _broken(file, str(error).splitlines()[0]) from error


def _broken(file: Path, why: str) -> InputError:
    return InputError(
        f"cannot use {file}: {why}; restore it, or delete it and run the same `resispec audit` again, "
        "which audits its positions anew"
    )


def _fingerprint(manifest: Mapping[str, Any]) -> str:
    """Of the identity: what ties a part to its run. Parts of an equal run are as good as a run's own."""
    told = json.dumps(manifest["identity"], sort_keys=True)
    return sha256(told.encode()).hexdigest()


def _json(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def _number(file: Path) -> str:
    match = _PART.fullmatch(file.name)
    assert match is not None
    return match[1]


def _ours(name: str) -> bool:
    """True for what a session killed before its first manifest can have left behind."""
    return name in (LOCK, MANIFEST + PARTIAL)
