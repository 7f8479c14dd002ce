"""Importing the package brings in none of the heavy libraries."""

import subprocess
import sys

HEAVY = ("torch", "cupy", "transformers", "hypothesis", "pytest", "matplotlib")


def loaded(code):
    script = f"{code}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_package_and_the_command_are_light():
    assert loaded("import resispec_core, resispec_core.cli.main") == "[]"


def test_the_check_sees_a_heavy_import():
    assert loaded("import hypothesis") == "['hypothesis']"
