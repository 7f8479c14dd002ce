"""The `resispec` command: one group, one place that turns errors into messages and exit codes."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence

import click

from resispec_core import __version__
from resispec_core.cli.audit import audit
from resispec_core.cli.compare import compare
from resispec_core.cli.diff import diff
from resispec_core.cli.distill import distill
from resispec_core.cli.doctor import doctor
from resispec_core.cli.fuzz import fuzz
from resispec_core.cli.generate import generate
from resispec_core.cli.info import info
from resispec_core.cli.record import record
from resispec_core.cli.replay import replay
from resispec_core.cli.report import report
from resispec_core.cli.rules import rules
from resispec_core.cli.speed import speed
from resispec_core.cli.tables import tables
from resispec_core.cli.trees import trees
from resispec_core.errors import BudgetExceededError, InputError

USAGE_ERROR, INCONCLUSIVE, INTERRUPTED, PIPE_CLOSED = 2, 3, 130, 141


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="resispec")
def group() -> None:
    """Says exactly whether a speculative-sampling verifier keeps the target model's distribution.

    Exit codes: 0 exact or within the stated bound, 1 biased, 2 unusable input, 3 inconclusive, 130 interrupted,
    141 the reader of the output went away.
    """


commands = (
    audit,
    compare,
    replay,
    rules,
    trees,
    record,
    info,
    generate,
    distill,
    speed,
    tables,
    doctor,
    report,
    diff,
    fuzz,
)
for command in commands:
    group.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status; no traceback for anything a user can cause."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ‖ or ≥ must not end the run
    try:
        status = group.main(arguments, prog_name="resispec", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        _complain("interrupted", arguments)
        status = INTERRUPTED
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        usage = f"\n{context.get_usage()}" if context else ""
        _complain(error.format_message() + usage, arguments)
        status = error.exit_code
    except InputError as error:
        _complain(str(error), arguments)
        status = USAGE_ERROR
    except BudgetExceededError as error:
        _complain(str(error), arguments)
        status = INCONCLUSIVE
    except KeyboardInterrupt:
        _complain("interrupted", arguments)
        status = INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # click and rich turn a closed pipe into SystemExit(1), which here would say "biased".
        _discard_output()
        status = PIPE_CLOSED
    except OSError as error:
        _discard_output()
        _complain(f"cannot read or write: {error}", arguments)
        status = USAGE_ERROR
    sys.exit(status or 0)


def _discard_output() -> None:
    """Send what is still buffered nowhere: the flush at exit would fail again, with a traceback."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, arguments: Sequence[str]) -> None:
    if "--json" in arguments:
        click.echo(json.dumps({"error": message}))
    click.echo(f"resispec: {message}", err=True)
