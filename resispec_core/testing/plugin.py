"""The pytest plugin: one line per verdict, and a false-alarm rate shared by every statistical assertion of a run.

Installed with the package and without effect until an assertion of ``resispec_core.testing`` is used. It is imported
whenever pytest starts, so it imports neither Hypothesis nor torch nor SciPy. Under pytest-xdist every worker gets an
equal part of α, and the verdicts travel to the controller in the reports' ``user_properties``.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from resispec_core.testing import session as sessions

VERDICT, ALPHA = "resispec", "resispec-alpha"
_SESSION = pytest.StashKey[sessions.Session]()
_BEFORE = pytest.StashKey[sessions.Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--resispec-alpha`` and ``--resispec-folder``."""
    group = parser.getgroup("resispec", "verdicts on speculative samplers")
    group.addoption(
        "--resispec-alpha",
        type=float,
        default=sessions.DEFAULT_ALPHA,
        metavar="RATE",
        help="chance of a false alarm, over all statistical assertions of the run together (default: %(default)s)",
    )
    group.addoption(
        "--resispec-folder",
        default=sessions.DEFAULT_FOLDER,
        metavar="DIR",
        help="where failing counterexamples are written (default: %(default)s, below the root directory)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Put this run's session in force."""
    alpha = config.getoption("--resispec-alpha")
    if not 0 < alpha < 1:
        raise pytest.UsageError(f"--resispec-alpha is {alpha}; it is a probability between 0 and 1")
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    folder = config.rootpath / Path(config.getoption("--resispec-folder"))
    config.stash[_SESSION] = sessions.Session(alpha / workers, folder)
    config.stash[_BEFORE] = sessions.activate(config.stash[_SESSION])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Back to the session before (a pytest run inside a test)."""
    if _BEFORE in config.stash:
        sessions.activate(config.stash[_BEFORE])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A new test begins."""
    item.config.stash[_SESSION].begin(item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """After the test, its verdicts go with its report."""
    session = item.config.stash[_SESSION]
    try:
        return (yield)
    finally:
        item.user_properties += [(VERDICT, str(record)) for record in session.records.values()]
        item.user_properties += [(ALPHA, repr(share)) for share in session.spent]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A line per verdict, and the α that was spent."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    calls = [report for report in reports if getattr(report, "when", None) == "call"]
    lines = [
        (report.nodeid, text) for report in calls for name, text in report.user_properties if name == VERDICT
    ]
    shares = [float(text) for report in calls for name, text in report.user_properties if name == ALPHA]
    if not lines:
        return
    terminalreporter.section("resispec verdicts")
    for test, text in sorted(lines):
        terminalreporter.write_line(f"{test} {text}")
    if shares:
        alpha = config.getoption("--resispec-alpha")
        terminalreporter.write_line(
            f"statistical assertions: {len(shares)}, α spent {sum(shares):.2g} of {alpha:.2g}"
        )


@pytest.fixture(scope="session")
def resispec_session(pytestconfig: pytest.Config) -> sessions.Session:
    """This run's session: ``spend()`` gives a share of α, ``folder`` is where counterexamples go."""
    return pytestconfig.stash[_SESSION]


@pytest.fixture
def resispec_alpha(resispec_session: sessions.Session) -> float:
    """This test's share of the run's false-alarm rate, for a statistical test of its own."""
    return resispec_session.spend()
