"""Where positions are audited: this process, a pool of local processes, or a Dask cluster.

The engine needs no more than the ``concurrent.futures.Executor`` interface. A pool adds how many positions to keep
under way, and how to begin anew when workers die.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from resispec_core.errors import InputError

CONNECT_SECONDS = 10


@dataclass
class Pool:
    """An executor, and what the engine has to know about it."""

    executor: Executor
    in_flight: Callable[[], int]
    """Positions to keep under way: enough that no worker waits, few enough that memory stays flat."""
    renew: Callable[[], Executor] | None = None
    """Makes a new executor after the workers of the old one died; None where only the owner can."""


class InProcess(Executor):
    """Runs a call when it is submitted, in this process."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """The finished future of the call. KeyboardInterrupt and the like go to the caller at once."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def in_process() -> Iterator[Pool]:
    """One position at a time, without another process."""
    yield Pool(InProcess(), lambda: 1)


@contextmanager
def local_pool(workers: int | None = None) -> Iterator[Pool]:
    """A pool of processes on this machine; ``workers``: None for one a usable CPU.

    Processes are started afresh (not forked: a fork copies threads and locks of the parent in an unknown state), and
    end when the parent does, even if it is killed. Cost: about a second and 100 MB a worker.
    """
    count = usable_cpus() if workers is None else workers
    if count < 1:
        raise InputError(f"workers is {count}; at least one is needed")

    def start() -> Executor:
        context = multiprocessing.get_context("spawn")
        pool.executor = ProcessPoolExecutor(count, mp_context=context, initializer=_follow_the_parent)
        return pool.executor

    pool = Pool(InProcess(), lambda: 2 * count, start)
    start()
    try:
        yield pool
    finally:
        pool.executor.shutdown(cancel_futures=True)


@contextmanager
def dask_pool(address: str) -> Iterator[Pool]:
    """The workers of a running Dask cluster, by the address of its scheduler (``tcp://host:8786``).

    Workers may join and leave meanwhile. Dask itself repeats what a lost worker was doing. Rows travel with the tasks
    (4V bytes a position), so workers need this package but not the store.

    Raises InputError: no scheduler answers there; `distributed` is not installed.
    """
    try:
        import distributed
    except ImportError:
        raise InputError(
            "--scheduler needs Dask's distributed: pip install 'resispec-core[distributed]'"
        ) from None
    library: Any = distributed  # it is not annotated throughout
    try:
        client = library.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`"
        ) from None

    def in_flight() -> int:
        return max(2, 2 * sum(client.ncores().values()))

    # A lost scheduler is an error of the engine's own; the client's would add a traceback.
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with client:
            # pure=False: a position that is run again must not be answered from an earlier future.
            yield Pool(client.get_executor(pure=False), in_flight)
    finally:
        log.setLevel(level)


def usable_cpus() -> int:
    """CPUs that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def _follow_the_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it ends, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)  # there is nobody left to tell

        threading.Thread(target=wait, daemon=True).start()
