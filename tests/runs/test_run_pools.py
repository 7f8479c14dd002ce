"""Wherever positions are audited the rows are the same, and a worker that dies costs nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import PLAN, Deadly, Slow, alive, audited, check_whole, make_store, rows, wait_for

from resispec_core.errors import InputError
from resispec_core.llama.store import LogitsStore
from resispec_core.runs import Plan, Run, audit_store, dask_pool, in_process, local_pool
from resispec_core.runs import run as run_module
from resispec_core.runs.pools import Pool
from resispec_core.runs.work import audit_position


def test_threads_processes_and_one_process_give_the_same_rows(
    store: LogitsStore, whole: Path, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(3) as executor:
        audit_store(store, PLAN, tmp_path / "threads", Pool(executor, lambda: 6))
    check_whole(tmp_path / "threads", whole)
    with local_pool(2) as pool:
        audit_store(store, PLAN, tmp_path / "processes", pool)
    check_whole(tmp_path / "processes", whole)


def test_the_check_sees_a_single_digit(
    store: LogitsStore, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noisy(job: Any, place: int, target: Any, draft: Any) -> Any:
        found = audit_position(job, place, target, draft)
        found[0]["acceptance"] = float(np.nextafter(found[0]["acceptance"], 1))
        return found

    monkeypatch.setattr(run_module, "audit_position", noisy)
    audited(store, tmp_path / "out")
    with pytest.raises(AssertionError):
        check_whole(tmp_path / "out", whole)


def pids(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.iterdir()]


def check_killed_worker(store: LogitsStore, tmp_path: Path) -> None:
    """Kill one of two workers while it works: the run ends whole, without a problem."""
    (tmp_path / "pids").mkdir()
    plan = Plan((Slow(str(tmp_path / "pids"), 0.1),), 1)
    audited(store, tmp_path / "whole", plan)
    for file in (tmp_path / "pids").iterdir():
        file.unlink()

    def kill() -> None:
        os.kill(wait_for(lambda: pids(tmp_path / "pids"))[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with local_pool(2) as pool:
        renew, renewed = pool.renew, []

        def counted() -> Any:
            renewed.append(True)
            return renew()

        pool.renew = counted
        outcome = audit_store(store, plan, tmp_path / "out", pool)
    killer.join()
    assert outcome.problems == []
    assert len(renewed) == 1
    check_whole(tmp_path / "out", tmp_path / "whole")


def test_a_local_worker_that_is_killed_costs_nothing(store: LogitsStore, tmp_path: Path) -> None:
    check_killed_worker(store, tmp_path)


def test_the_check_sees_positions_that_died_with_their_worker(
    store: LogitsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = run_module._Session._begin_anew

    def forgetful(session: Any, error: BaseException, *, guilty: int | None) -> None:
        session.waiting.clear()
        real(session, error, guilty=guilty)

    monkeypatch.setattr(run_module._Session, "_begin_anew", forgetful)
    with pytest.raises(AssertionError):
        check_killed_worker(store, tmp_path)


def test_a_position_that_kills_its_worker_is_the_only_one_missing(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", positions=7, per_shard=3)
    favourites = [int(store.row(place)[0].argmax()) for place in range(7)]
    token = next(token for token in favourites if favourites.count(token) == 1)
    with local_pool(2) as pool:
        outcome = audit_store(store, Plan((Deadly(token),), 1), tmp_path / "out", pool)
    (problem,) = outcome.problems
    assert problem["place"] == f"position {favourites.index(token)}"
    assert "its worker died, twice" in problem["error"]
    assert outcome.done == 6


def test_workers_that_cannot_live_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "DEATHS_ALLOWED", 2)
    store = make_store(tmp_path / "store", positions=8)
    everywhere = tuple({int(store.row(place)[0].argmax()) for place in range(8)})
    plan = Plan(tuple(Deadly(token) for token in everywhere), 1)
    with local_pool(1) as pool, pytest.raises(InputError, match="3 times with no position done in between"):
        audit_store(store, plan, tmp_path / "out", pool)


def test_an_executor_that_breaks_leaves_a_run_to_continue(
    store: LogitsStore, whole: Path, tmp_path: Path
) -> None:
    with local_pool(2) as pool:
        borrowed = Pool(pool.executor, pool.in_flight)  # as of a caller who passes an executor of his own

        def tell(done: int, _: int) -> None:
            if done == 4:
                for pid in list(pool.executor._processes):  # type: ignore[attr-defined]
                    os.kill(pid, signal.SIGKILL)

        with pytest.raises(
            InputError, match=r"the workers are gone .* run the same command again to continue"
        ):
            audit_store(store, PLAN, tmp_path / "out", borrowed, tell=tell)
    assert 4 <= Run.open(tmp_path / "out").done.sum() < 12
    audited(store, tmp_path / "out")
    check_whole(tmp_path / "out", whole)


class Losing(Executor):
    """Loses its connection after a few calls, as a Dask client whose scheduler ended."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.left:
            self.left -= 1
            future.set_result(function(*arguments, **named))
        else:
            future.cancel()
        return future


def test_a_scheduler_that_is_lost_leaves_a_run_to_continue(
    store: LogitsStore, whole: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        InputError, match=r"the workers are gone \(CancelledError\); what was audited is kept"
    ):
        audit_store(store, PLAN, tmp_path / "out", Pool(Losing(5), lambda: 2))
    assert Run.open(tmp_path / "out").done.sum() == 5
    audited(store, tmp_path / "out")
    check_whole(tmp_path / "out", whole)


def test_ctrl_c_keeps_what_is_done(store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    def tell(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with in_process() as pool:
        outcome = audit_store(store, PLAN, tmp_path / "out", pool, tell=tell)
    assert (outcome.interrupted, outcome.done) == (True, 5)
    audited(store, tmp_path / "out")
    check_whole(tmp_path / "out", whole)


def test_a_worker_with_other_code_is_refused(
    store: LogitsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = run_module.Job

    def job(plan: Plan, versions: dict[str, str], name: str) -> Any:
        return other(plan, versions | {"numpy": "1.0"}, name)

    monkeypatch.setattr(run_module, "Job", job)
    with pytest.raises(InputError, match=r"a worker has numpy .*, the run 1\.0: rows of different code"):
        audited(store, tmp_path / "out")


def test_bad_pools() -> None:
    with pytest.raises(InputError, match="workers is 0"), local_pool(0):
        pass
    with (
        pytest.raises(InputError, match="no Dask scheduler answers at nonsense://x"),
        dask_pool("nonsense://x"),
    ):
        pass


@contextmanager
def cluster() -> Iterator[Any]:
    """A scheduler and two workers in processes of their own, on this machine."""
    distributed = pytest.importorskip(
        "distributed", reason="distributed is not installed: no Dask cluster to test on"
    )
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        worker_dashboard_address=None,
    ) as found:
        yield found


def test_a_dask_cluster_that_loses_a_worker_gives_the_same_rows(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    (tmp_path / "pids").mkdir()
    plan = replace(PLAN, rules=("resispec", "specinfer", Slow(str(tmp_path / "pids"), 0.1)))
    audited(store, tmp_path / "whole", plan)
    for file in (tmp_path / "pids").iterdir():
        file.unlink()
    killed: list[int] = []

    with cluster() as found, dask_pool(found.scheduler_address) as pool:

        def tell(done: int, _: int) -> None:
            busy = pids(tmp_path / "pids")
            if done < 12 and len(busy) == 2 and not killed:  # both have begun, and there is work left
                assert os.getpid() not in busy
                killed.append(busy[0])
                os.kill(busy[0], signal.SIGKILL)

        outcome = audit_store(store, plan, tmp_path / "out", pool, tell=tell)
    assert outcome.problems == []
    assert killed
    assert not alive(killed[0])
    check_whole(tmp_path / "out", tmp_path / "whole")
    assert {row["rule"] for row in rows(tmp_path / "out")} == {"resispec", "specinfer", plan.labels[2]}
