"""What the repository holds at its top, and that its parts agree."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from resispec_core import __version__

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "resispec_core",
    "proofs",
    "tests",
    "fuzz",
    "docs",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    ".ci",
    ".gitignore",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def strangers(paths: list[str]) -> set[str]:
    """Top-level names that the project does not have."""
    return {path.partition("/")[0] for path in paths} - ALLOWED


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the git checkout: it lists the tracked files")
def test_only_the_agreed_names_are_at_the_top() -> None:
    tracked = subprocess.run(
        ("git", "-c", f"safe.directory={ROOT}", "ls-files"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(tracked) > 50
    assert strangers(tracked) == set()


def test_a_stranger_is_noticed() -> None:
    assert strangers(["docs/a.md", "scratch.py", "changelog.d/1.md"]) == {"scratch.py", "changelog.d"}


def test_the_version_is_said_once_and_alike() -> None:
    assert PROJECT["project"]["version"] == __version__


def test_the_extras() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert {"gpu", "llama", "test", "distributed", "docs"} <= extras.keys()
    # One version, so that every machine tests with the same build.
    assert [name for name in extras["test"] if name.startswith("torch")] == ["torch==2.13.0"]


def test_what_the_project_promises_to_run() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
    for check in ("ruff check .", "ruff format --check .", "mypy"):
        assert check in script
    assert PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"][0] == "error"
    assert PROJECT["tool"]["pytest"]["ini_options"]["xfail_strict"] is True
    assert PROJECT["tool"]["mypy"]["strict"] is True


def test_the_changelog_has_an_unreleased_part() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE)[0] == "Unreleased"
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, flags=re.MULTILINE)) <= kinds
