"""A run as a process: kill -9 with workers, two commands on one folder, a disk that is really full, memory."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from run_cases import (
    Result,
    Slow,
    alive,
    audited,
    check_whole,
    environment,
    flip_byte,
    make_store,
    run_process,
    wait_for,
)

from resispec_core.cli import output
from resispec_core.llama.store import LogitsStore
from resispec_core.runs import Plan, Run, audit_store, in_process
from resispec_core.runs import run as run_module
from resispec_core.runs.store import parts
from tests.cli.cli_cases import COMMAND

# The program of a user, with a rule slow enough to be killed, on two workers.
SLOW = """
import sys
from pathlib import Path
from run_cases import Slow
from resispec_core.llama.store import LogitsStore
from resispec_core.runs import Plan, audit_store, local_pool
from resispec_core.runs import run

run.POSITIONS_PER_PART = 2

if __name__ == "__main__":
    store, out, pids = sys.argv[1:]
    with local_pool(2) as pool:
        audit_store(LogitsStore.open(store), Plan((Slow(pids, 0.3),), 1), out, pool)
"""


def test_kill_9_in_the_middle(store: LogitsStore, tmp_path: Path) -> None:
    pids, out, program = tmp_path / "pids", tmp_path / "out", tmp_path / "slow.py"
    pids.mkdir()
    program.write_text(SLOW)
    process = subprocess.Popen(
        (sys.executable, str(program), str(store.path), str(out), str(pids)), env=environment()
    )
    try:
        wait_for(lambda: out.is_dir() and len(parts(out)) >= 2)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    workers = [int(file.name) for file in pids.iterdir()]
    assert workers
    before = Run.open(out).done.copy()
    assert 4 <= before.sum() < 12
    wait_for(lambda: not any(alive(pid) for pid in workers))  # no orphans
    plan = Plan((Slow(str(pids), 0.3),), 1)
    outcome = audited(store, out, plan)  # the lock went with the process
    assert outcome.audited == 12 - before.sum()
    audited(store, tmp_path / "whole", plan)
    check_whole(out, tmp_path / "whole")


# What the command does with these rules, which it does not know by name. Ctrl-C reaches a whole process group.
SLOW_COMMAND = """
import signal, sys
from pathlib import Path
from run_cases import Slow
from resispec_core.cli.runs import audit_to_run
from resispec_core.runs import Plan

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where it was ignored before
    store, out, pids = sys.argv[1:]
    plan = Plan((Slow(pids, 0.3),), 1)
    sys.exit(audit_to_run(plan, store, Path(out), workers=2, scheduler=None, as_json=True))
"""


def test_ctrl_c_keeps_what_is_done_and_says_how_to_continue(store: LogitsStore, tmp_path: Path) -> None:
    pids, out, program = tmp_path / "pids", tmp_path / "out", tmp_path / "slow_command.py"
    pids.mkdir()
    program.write_text(SLOW_COMMAND)
    process = subprocess.Popen(
        (sys.executable, str(program), str(store.path), str(out), str(pids)),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: len(list(pids.iterdir())) == 2)  # both workers are at work
    time.sleep(0.5)  # at 0.3 s a position one is done, and twelve are not
    os.killpg(process.pid, signal.SIGINT)
    printed, err = process.communicate(timeout=60)
    found = Result(process.returncode, printed, err)
    assert (found.code, found.json["interrupted"], found.json["complete"]) == (130, True, False)
    done = found.json["positions_done"]
    assert 1 <= done < 12
    assert Run.open(out).done.sum() == done
    assert found.err == (
        f"resispec: interrupted: {12 - done} of 12 positions are missing from {out}; "
        "run the same command again to continue\n"
    )
    assert audited(store, out, Plan((Slow(str(pids), 0.3),), 1)).audited == 12 - done


def test_two_commands_on_one_folder(store: LogitsStore, tmp_path: Path) -> None:
    arguments = ("audit", "--rule", "specinfer", "--logits", str(store.path), "--out", str(tmp_path / "out"))
    holder = (
        "import sys, filelock; lock = filelock.FileLock(sys.argv[1]); lock.acquire(); print('held', flush=True);"
        "sys.stdin.read()"
    )
    first = run_process(*arguments, "--workers", "1")
    assert first.code == 0
    process = subprocess.Popen(
        (sys.executable, "-c", holder, str(tmp_path / "out" / "run.lock")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        second = run_process(*arguments, "--workers", "1")
    finally:
        process.kill()
        process.communicate()
    assert (second.code, second.out) == (2, "")
    assert second.err == (
        f"resispec: another process is writing to {tmp_path / 'out'}; wait for it, or choose another folder\n"
    )
    assert run_process(*arguments, "--workers", "1") == first


FULL = """
mount -t tmpfs -o size=64k tmpfs "$1" || exit 77
"${@:3}"; echo "status $?"
ls "$1/run"
mount -o remount,size=8m "$1"
"${@:3}" > "$2" || exit 78
cp -r "$1/run" "$2.run"
"""


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A file system of 64 kB, in a mount namespace of its own."""
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed: no small file system can be mounted")
    store = make_store(tmp_path / "store", positions=900, per_shard=450)
    small = tmp_path / "small"
    small.mkdir()
    command = (
        *COMMAND, "audit", "--rule", "specinfer", "-n", "1", "--logits", str(store.path), "--workers", "1", "--json",
        "--out", str(small / "run"),
    )  # fmt: skip
    done = subprocess.run(
        (
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "bash",
            "-c",
            FULL,
            "-",
            small,
            tmp_path / "end",
            *command,
        ),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode in (1, 77) and "status" not in done.stdout:
        pytest.skip(f"this machine lets nobody mount a small file system: {done.stderr.strip()}")
    assert done.returncode == 0, done
    assert "status 2" in done.stdout
    assert "No space left on device; rows already recorded are kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\npart-00000000.parquet\n" in done.stdout  # what the first session left
    end = json.loads((tmp_path / "end").read_text())
    assert end["complete"]
    assert 0 < end["positions_audited_now"] < 900
    audited(store, tmp_path / "whole", Plan(("specinfer",), 1))
    check_whole(tmp_path / "end.run", tmp_path / "whole")


def specinfer_run(store: LogitsStore, out: Path) -> tuple[str, ...]:
    """Arguments of an audit of ``store`` kept in ``out``, in one process."""
    return ("--rule", "specinfer", "--logits", str(store.path), "--out", str(out), "--workers", "1")


def test_the_command_names_a_damaged_shard_and_goes_on(store: LogitsStore, tmp_path: Path) -> None:
    shard = store.path / store.shards[1].file
    flip_byte(shard)
    arguments = specinfer_run(store, tmp_path / "out")
    found = run_process("audit", *arguments)
    assert found.code == 2
    assert f"resispec: {shard.name}, not audited: {shard} was changed since it was recorded" in found.err
    assert "incomplete: 4 of 12 positions are missing from" in found.err
    assert "8 of 12 positions, INCOMPLETE" in found.out
    told = run_process("audit", *arguments, "--json")
    assert (told.code, told.json["complete"], told.json["positions_done"]) == (2, False, 8)
    assert told.json["problems"][0]["place"] == shard.name
    flip_byte(shard)
    healed = run_process("audit", *arguments, "--json")
    assert (healed.code, healed.err) == (0, "")
    assert healed.json["positions_audited_now"] == 4


def test_the_command_says_what_differs(store: LogitsStore, tmp_path: Path) -> None:
    arguments = specinfer_run(store, tmp_path / "out")
    assert run_process("audit", *arguments, "-n", "2").code == 0
    found = run_process("audit", *arguments, "-n", "1")
    assert (found.code, found.out) == (2, "")
    assert "was begun with other settings: candidates is 2 in the run and 1 now" in found.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "2"), "--workers needs --out RUN"),
        (("--scheduler", "tcp://x:1"), "--scheduler needs --out RUN"),
        (("--out", "x", "--workers", "2", "--scheduler", "tcp://x:1"), "exclude each other"),
        (("--out", "x", "--workers", "0"), "workers is 0"),
        (("--out", "x", "--target", "1/2,1/2", "--draft", "1/2,1/2"), "--out applies to logits"),
        (("--out", "x", "pkg.mod:verify"), "--out is about rules"),
        (("--workers", "2", "--target", "1/2,1/2", "--draft", "1/2,1/2"), "--workers needs --out RUN"),
        (("--out", "x", "--tree", "complete:2x2"), "--out does not go with --tree"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    found = run_process("audit", *arguments, cwd=tmp_path)
    assert (found.code, found.out) == (2, "")
    assert message in found.err
    assert not list(tmp_path.iterdir())


# Memory. The store's own index grows with its positions and is made before the measurement begins.


def peak(store: LogitsStore, out: Path) -> int:
    """Most bytes that Python held at once during a session, over what it held before."""
    with in_process() as pool:
        tracemalloc.start()
        try:
            audit_store(store, Plan(("specinfer",), 1), out, pool)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def check_flat(tmp_path: Path) -> None:
    small, large = (make_store(tmp_path / f"{size}", positions=size, per_shard=100) for size in (100, 1000))
    peak(make_store(tmp_path / "warm", positions=20), tmp_path / "out")  # imports and caches
    one, ten = peak(small, tmp_path / "out100"), peak(large, tmp_path / "out1000")
    # A row is above 2 kB in Python: 900 more of them, kept, would be above 1.8 MB. A flag a position is 0.9 kB.
    assert ten < one + 300_000, f"{one} bytes at 100 positions, {ten} at 1000"


def test_memory_does_not_grow_with_the_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "POSITIONS_PER_PART", 32)  # both sizes fill a part
    check_flat(tmp_path)


def test_the_check_sees_rows_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    real = run_module.placed

    def hoarding(*arguments: Any) -> Any:
        kept.append(real(*arguments))
        return kept[-1]

    monkeypatch.setattr(run_module, "POSITIONS_PER_PART", 32)
    monkeypatch.setattr(run_module, "placed", hoarding)
    with pytest.raises(AssertionError, match="at 1000"):
        check_flat(tmp_path)


def test_progress_shows_the_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(output, "Console", lambda **_: terminal)
    monkeypatch.setenv("TERM", "xterm")
    with output.meter("audit") as tell:
        for done in (40, 50, 60, 70):
            tell(done, 100)
            time.sleep(0.05)
        terminal.file.flush()
        time.sleep(0.15)  # one refresh
    shown = screen.getvalue()
    assert "70/100" in shown
    assert re.search(r"\d+\.\d/s", shown)
    assert re.search(r"left \S*0:00:0\d", shown)
    screen.truncate(0)
    with output.meter("audit", quiet=True) as tell:
        tell(1, 2)
    assert screen.getvalue() == ""
