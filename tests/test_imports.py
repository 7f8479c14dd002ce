"""Importing the package brings in none of the heavy libraries, and each stays in its own room."""

import subprocess
import sys
from pathlib import Path

import resispec_core

HEAVY = (
    *("torch", "cupy", "transformers", "hypothesis", "pytest", "matplotlib"),
    *("pyarrow", "filelock", "distributed", "jinja2"),
)
ROOT = Path(resispec_core.__file__).parent


def loaded(code):
    script = f"{code}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_package_and_the_command_are_light():
    assert loaded("import resispec_core, resispec_core.cli.main") == "[]"


def test_the_gpu_room_is_light():
    assert loaded("import resispec_core.gpu, resispec_core.gpu.bench, resispec_core.gpu.doctor") == "[]"


def test_everything_but_the_gpu_path_runs_where_cupy_cannot_be_imported():
    code = (
        "import sys; sys.modules['cupy'] = None; import numpy as np; from resispec_core import gpu;"
        "p = np.array([[0.25, 0.75]], np.float32);"
        "assert gpu.specinfer(p, p, np.array([[1]]), np.array([[0.5, 0.5]])).token.tolist() == [1];"
        "del sys.modules['cupy']"
    )
    assert loaded(code) == "[]"


def test_the_check_sees_a_heavy_import():
    assert loaded("import hypothesis") == "['hypothesis']"


def rooms_importing(library, root):
    """The parts of the package with a line that imports ``library``."""
    lines = (
        (path.relative_to(root).parts[0], line.strip())
        for path in root.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    return {room for room, line in lines if line.startswith((f"import {library}", f"from {library}"))}


def test_cupy_is_imported_in_the_gpu_room_only():
    assert rooms_importing("cupy", ROOT) == {"gpu"}


def test_the_check_sees_cupy_elsewhere(tmp_path):
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama" / "fast.py").write_text(
        "def f():\n    from cupy.cuda import nvrtc\n    return nvrtc\n"
    )
    assert rooms_importing("cupy", tmp_path) == {"llama"}
