"""The command as a process: Ctrl-C, a reader that goes away, a full disk, a narrow locale."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_cases import COMMAND, WITNESS, Result, environment, run_process

# The real command, except that it says when it reaches a given position and then waits to be interrupted.
SLOWED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background may have been told to ignore it
import resispec_core.cli.main as main
module = sys.modules["resispec_core.cli.audit"]
real, left = module.audit_pair, int(sys.argv.pop(1))

def audit_pair(*arguments, **options):
    global left
    if left == 0:
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(60)
    left -= 1
    return real(*arguments, **options)

module.audit_pair = audit_pair
main.main()
"""


def interrupt(before: int, *arguments: str) -> Result:
    """Send SIGINT once ``before`` positions have been audited."""
    process = subprocess.Popen(
        (sys.executable, "-c", SLOWED, str(before), *arguments),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return Result(process.returncode, out, err)


def said_once(err: str, message: str) -> None:
    """One line, no traceback (click ends the terminal's ^C line with an empty one)."""
    assert "Traceback" not in err
    assert err.lstrip("\n") == f"resispec: {message}\n"


def test_ctrl_c_prints_what_was_audited(small_store: Path) -> None:
    found = interrupt(2, "audit", "--rule", "resispec", "--logits", str(small_store), "--json")
    assert found.code == 130
    said_once(
        found.err, "interrupted after 2 of 3 positions of resispec; above is what was audited until then"
    )
    assert found.json["interrupted"] is True
    assert (found.json["positions_audited"], found.json["positions_in_store"]) == (2, 3)
    assert [place["position"] for place in found.json["positions"]] == [0, 1]


def test_ctrl_c_keeps_the_rules_that_were_done(small_store: Path) -> None:
    rules = ("--rule", "resispec", "--rule", "specinfer")
    found = interrupt(3, "audit", *rules, "--logits", str(small_store), "--json")
    assert found.code == 130
    said_once(
        found.err, "interrupted after 0 of 3 positions of specinfer; above is what was audited until then"
    )
    (audit,) = found.json["audits"]
    assert (audit["rule"], audit["positions_audited"], audit["interrupted"]) == ("resispec", 3, False)


def test_ctrl_c_labels_the_table(small_store: Path) -> None:
    found = interrupt(1, "audit", "--rule", "resispec", "--logits", str(small_store))
    assert found.code == 130
    assert "1 of 3 positions, INTERRUPTED" in found.out


def test_ctrl_c_before_the_first_position(small_store: Path) -> None:
    found = interrupt(0, "audit", "--logits", str(small_store), "--json")
    assert (found.code, found.json) == (130, {"error": "interrupted"})
    said_once(found.err, "interrupted")


def test_ctrl_c_on_a_pair() -> None:
    found = interrupt(0, "audit", *WITNESS)
    assert (found.code, found.out) == (130, "")
    said_once(found.err, "interrupted")


@pytest.mark.parametrize("err", ["resispec: interrupted\nagain\n", "Traceback\nresispec: interrupted\n", ""])
def test_the_check_of_the_message_can_fail(err: str) -> None:
    with pytest.raises(AssertionError):
        said_once(err, "interrupted")


@pytest.mark.parametrize("arguments", [("audit", "--json"), ("audit",), ("rules",), ("info",), ("--help",)])
def test_a_closed_pipe_is_no_verdict(small_store: Path, arguments: tuple[str, ...]) -> None:
    where = ("--rule", "specinfer", "--logits", str(small_store)) if arguments[0] == "audit" else ()
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            (*COMMAND, *arguments, *where),
            env=environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writer)
    # 1 would say "biased", and 0 would say that somebody read an exact verdict.
    assert done.returncode == 141
    assert done.stderr == ""


def test_a_reader_of_one_line_leaves_no_noise(small_store: Path) -> None:
    pipeline = f'"$@" audit --json --rule specinfer --logits "{small_store}" | head -n 1'
    done = subprocess.run(
        ("bash", "-c", pipeline, "bash", *COMMAND),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a Linux device")
@pytest.mark.parametrize("arguments", [("audit", "--json", *WITNESS), ("rules",)])
def test_a_full_disk(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            (*COMMAND, *arguments),
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr == "resispec: cannot read or write: [Errno 28] No space left on device\n"


def test_a_locale_without_the_letters() -> None:
    done = subprocess.run(
        (*COMMAND, "audit", *WITNESS),
        env=environment() | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "KL(target \\u2016 law), nats" in done.stdout


def test_json_and_messages_do_not_mix() -> None:
    found = run_process("audit", "--rule", "nope", "--json")
    assert (found.code, json.loads(found.out)["error"][:19]) == (2, "unknown rule 'nope'")
