"""Audit every position of a store into a run: resumable, on any executor, in memory that does not grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama.store import VOCABULARY_FILE, LogitsStore, Row, Shard, file_sha256, read_index
from resispec_core.runs.plan import Plan
from resispec_core.runs.pools import Pool
from resispec_core.runs.records import placed
from resispec_core.runs.store import RunWriter, writing
from resispec_core.runs.work import Job, OtherVersionsError, audit_position

POSITIONS_PER_PART = 256
SECONDS_PER_PART = 30.0
PROBLEMS_KEPT = 100
"""Further problems are counted and not listed."""
DEATHS_ALLOWED = 10
"""Times in a row that workers may die without a single position done in between."""
FAILURES_ALLOWED = 100
"""Positions of whole shards that may fail while none is audited: past it, it is not the positions."""
POLL_SECONDS = 1.0
_LOST = (BrokenExecutor, CancelledError, OSError)
"""What a future raises when its executor is gone: a worker touches no file, so OSError is the connection's."""

Tell = Callable[[int, int], None]


@dataclass
class Outcome:
    """How a session ended."""

    path: Path
    positions: int
    """In the store."""
    done: int
    """In the run now."""
    audited: int
    """Of those, in this session."""
    problems: list[dict[str, Any]]
    interrupted: bool

    @property
    def complete(self) -> bool:
        """Every position of the store is in the run."""
        return self.done == self.positions


def open_unchecked(folder: str | Path) -> LogitsStore:
    """The store in a folder, with damaged shards allowed: a run checks each shard when it comes to it."""
    path = Path(folder)
    return LogitsStore(path, read_index(path))


def audit_store(
    store: LogitsStore, plan: Plan, out: str | Path, pool: Pool, *, tell: Tell = lambda _done, _total: None
) -> Outcome:
    """Audit what is missing of a run in the folder ``out``, which may be new.

    ``tell(done, total)`` is called at the start and after every position. Rows are the same bit for bit on every pool
    and over any number of sessions, ``seconds`` apart, on machines of one kind (see ``plan.versions``).

    A shard whose bytes are not those that were recorded is a problem of its positions, and so is a row that cannot be
    audited or whose worker dies twice; all others are audited. Ctrl-C keeps what is done.

    Raises InputError: what ``writing`` raises; the vocabulary is damaged; the disk refuses; the executor is lost and
    cannot be begun anew; ``FAILURES_ALLOWED`` positions failed and none was audited. What was done until then is kept,
    and the same call continues.

    Memory: a few positions a worker and the rows of one part, whatever the number of positions; the store's own index
    and a flag a position come on top.
    """
    if len(store) == 0:
        raise InputError(f"{store.path} holds no recorded position; finish it with `resispec record`")
    _check_vocabulary(store)
    with writing(out, plan, store) as writer:
        job = Job(plan, dict(writer.manifest["identity"]["versions"]), str(store.path))
        session = _Session(store, writer, pool, job, tell)
        interrupted = False
        try:
            session.run()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            session.flush()
            writer.note(session.problems)
        return Outcome(
            path=Path(out),
            positions=len(store),
            done=int(writer.done.sum()),
            audited=session.audited,
            problems=session.problems,
            interrupted=interrupted,
        )


@dataclass
class _Session:
    """The loop: fill the pool, take what is done, write it."""

    store: LogitsStore
    writer: RunWriter
    pool: Pool
    job: Job
    tell: Tell
    problems: list[dict[str, Any]] = field(default_factory=list)
    audited: int = 0
    failures: int = 0
    """Positions that could not be audited, in this session."""
    deaths: int = 0
    """Since a position was last done."""
    earlier: int = 0
    """Positions done before this session."""
    written: float = 0.0
    """When the last part was written."""
    suspects: deque[int] = field(default_factory=deque)
    """Positions that were under way when a worker died. Each is run again with nothing beside it, so that the one to
    blame, if a position is, is found and the others are not."""
    waiting: dict[Future[Any], int] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> None:
        self.earlier = int(self.writer.done.sum())
        self.written = monotonic()
        self.tell(self.earlier, len(self.store))
        todo = self._todo()
        more = True
        while more or self.suspects or self.waiting:
            alone = bool(self.suspects)
            while self.suspects and not self.waiting:
                self._submit(self.suspects.popleft())
            while more and not alone and len(self.waiting) < self.pool.in_flight():
                place = next(todo, None)
                more = place is not None
                if place is not None and not self._submit(place):
                    break
            if self.waiting:
                self._take(alone)

    def flush(self) -> None:
        """Write the rows that are done."""
        rows, self.rows = self.rows, []
        self.written = monotonic()
        if rows:
            self.writer.append(rows)

    def _todo(self) -> Iterator[int]:
        """Positions that no part holds and whose shard is whole, shard by shard."""
        end = 0
        for shard in self.store.shards:
            start, end = end, end + shard.rows
            missing = [start + int(at) for at in (~self.writer.done[start:end]).nonzero()[0]]
            damage = _damage(self.store, shard) if missing else None
            if damage:
                self._problem(shard.file, len(missing), damage)
            else:
                yield from missing

    def _submit(self, place: int) -> bool:
        """Put a position under way; False where that showed that the workers are gone."""
        try:
            target, draft = self._row(place)
        except InputError as error:
            self._failed(place, str(error))
            return True
        try:
            future = self.pool.executor.submit(audit_position, self.job, place, target, draft)
        except _LOST as error:
            self.suspects.append(place)
            self._begin_anew(error, guilty=None)
            return False
        self.waiting[future] = place
        return True

    def _row(self, place: int) -> tuple[Row, Row]:
        return self.store.row(place)

    def _take(self, alone: bool) -> None:
        finished, _ = wait(self.waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        # wait() does not see a future that was cancelled and whose executor is no more there to say so.
        finished |= {future for future in self.waiting if future.cancelled()}
        for future in sorted(finished, key=_is_lost):  # results first: a loss ends the loop
            place = self.waiting[future]
            try:
                found = future.result()
            except _LOST as error:
                self._begin_anew(error, guilty=place if alone else None)
                return
            except OtherVersionsError as error:
                raise InputError(
                    f"{error}: rows of different code would be mixed; install the same on every worker"
                ) from error
            except Exception as error:
                self._failed(place, _said(error))
            else:
                self.rows += [placed(row, place, self.store) for row in found]
                self.audited += 1
                self.deaths = 0
                self.tell(self.earlier + self.audited, len(self.store))
            # Only now: an interrupt before this line leaves the position to the next session, or keeps its rows.
            del self.waiting[future]
        full = len(self.rows) >= POSITIONS_PER_PART * len(self.job.plan.labels)
        if full or monotonic() - self.written > SECONDS_PER_PART:
            self.flush()

    def _begin_anew(self, error: BaseException, *, guilty: int | None) -> None:
        """The workers died. Start new ones; what was under way is run again, one position at a time."""
        lost = [place for place in self.waiting.values() if place != guilty]
        self.waiting.clear()
        self.suspects.extend(lost)
        self.deaths += 1
        if self.pool.renew is None or self.deaths > DEATHS_ALLOWED:
            often = f", {self.deaths} times with no position done in between" if self.deaths > 1 else ""
            raise InputError(
                f"the workers are gone{often} ({_said(error)}); what was audited is kept: "
                "run the same command again to continue"
            ) from error
        if guilty is not None:
            why = "its worker died, twice: the second time with nothing else under way (out of memory?)"
            self._failed(guilty, why)
        self.pool.executor.shutdown(wait=False, cancel_futures=True)
        self.pool.executor = self.pool.renew()

    def _failed(self, place: int, error: str) -> None:
        self._problem(f"position {place}", 1, error)
        self.failures += 1
        if self.failures >= FAILURES_ALLOWED and not self.audited:
            raise InputError(
                f"{self.failures} positions failed and none was audited, so it is not the positions: {error}"
            )

    def _problem(self, where: str, positions: int, error: str) -> None:
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append({"place": where, "positions": positions, "error": error})
        elif len(self.problems) == PROBLEMS_KEPT:
            self.problems.append({"place": "further places", "positions": positions, "error": "not listed"})
        else:
            self.problems[-1]["positions"] += positions


def _damage(store: LogitsStore, shard: Shard) -> str | None:
    """What is wrong with the bytes of a shard; None where they are those that were recorded."""
    file = store.path / shard.file
    try:
        found = file_sha256(file)
    except OSError as error:
        return f"cannot read {file}: {error.strerror or error}"
    if found == shard.sha256:
        return None
    return (
        f"{file} was changed since it was recorded: its sha256 is {found[:16]}…, not {shard.sha256[:16]}…; "
        "copy the store again"
    )


def _check_vocabulary(store: LogitsStore) -> None:
    store.decode(0)  # reads it
    file = store.path / VOCABULARY_FILE
    if file_sha256(file) != store.metadata["vocabulary_sha256"]:
        raise InputError(f"{file} was changed since it was recorded; copy the store again")


def _is_lost(future: Future[Any]) -> bool:
    return future.cancelled() or isinstance(future.exception(), _LOST)


def _said(error: BaseException) -> str:
    if isinstance(error, InputError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
