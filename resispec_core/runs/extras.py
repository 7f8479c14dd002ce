"""The libraries of the extra `runs`, imported when a run is opened and not before."""

from __future__ import annotations

from typing import Any

from resispec_core.errors import InputError

REMEDY = "pip install 'resispec-core[runs]'"


def pyarrow() -> Any:
    """The module pyarrow with its compute and parquet parts; raises InputError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"a run is kept in Parquet, which needs pyarrow: {REMEDY}") from None
    return pyarrow


def file_lock(path: Any) -> Any:
    """A lock on ``path`` that the operating system lets go when the process ends, however it ends."""
    try:
        import filelock
    except ImportError:
        raise InputError(f"a run is locked with filelock: {REMEDY}") from None
    return filelock.FileLock(path, blocking=False)
