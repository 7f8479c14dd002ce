"""The wheel, unpacked where there is nothing else of the project, runs the main job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = {"numpy", "scipy", "safetensors", "click", "rich"}
EXTRAS = (
    "torch",
    "transformers",
    "gguf",
    "accelerate",
    "tokenizers",
    "cupy",
    "matplotlib",
    "distributed",
    "pyarrow",
    "filelock",
    "jinja2",
    "hypothesis",
    "pytest",
    "_pytest",
)

# Every extra is made impossible to import, as it is where none is installed.
WITHOUT_EXTRAS = f"""
import sys
sys.modules |= dict.fromkeys({EXTRAS!r})
"""

MAIN_JOB = (
    WITHOUT_EXTRAS
    + """
import resispec_core
print(resispec_core.__file__, file=sys.stderr)
from resispec_core.cli.main import main
main(["audit", "--json"])
"""
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from this checkout, with the build tools that are installed."""
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = out.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel installed alone into an empty folder; the core dependencies are the environment's."""
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    done = subprocess.run(
        (*pip, "--target", str(folder), str(wheel)), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def python(program: str, installed: Path, empty: Path) -> subprocess.CompletedProcess[str]:
    """Run a program from an empty folder; the installed wheel comes before any checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        (sys.executable, "-W", "error", "-c", program),
        cwd=empty,
        env=environment | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_main_job_runs_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    done = python(MAIN_JOB, installed, tmp_path)
    assert done.stderr == f"{installed / 'resispec_core' / '__init__.py'}\n"
    assert done.returncode == 1
    published, exact = json.loads(done.stdout)["audits"]
    assert published["positions_in_store"] == len(published["positions"]) >= 24
    assert (published["verdict"], exact["verdict"]) == ("BIASED", "EXACT_WITHIN")
    assert list(tmp_path.iterdir()) == []


def test_nothing_imports_an_extra_unasked(installed: Path, tmp_path: Path) -> None:
    """Importing the package, every command and the store leaves the heavy libraries alone."""
    program = """
import sys
import resispec_core, resispec_core.cli.main, resispec_core.llama.store, resispec_core.audit.positions
print(sorted(name for name in set(sys.argv[1].split()) if name in sys.modules))
"""
    program = program.replace("sys.argv[1].split()", repr(EXTRAS))
    done = python(program, installed, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_the_check_for_imports_sees_one(installed: Path, tmp_path: Path) -> None:
    (installed / "planted.py").write_text("import matplotlib\n")
    done = python(WITHOUT_EXTRAS + "import planted", installed, tmp_path)
    assert done.returncode != 0
    assert "import of matplotlib halted" in done.stderr


def test_the_wheel_holds_the_sample_the_kernels_and_the_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert "resispec_core/py.typed" in names
    for file in (ROOT / "resispec_core" / "llama" / "sample").iterdir():
        assert f"resispec_core/llama/sample/{file.name}" in names
    kernels = [file.name for file in (ROOT / "resispec_core" / "gpu" / "kernels").iterdir()]
    assert {"stage_a.cu", "stage_b.cu", "common.cuh"} <= set(kernels)
    for file in kernels:
        assert f"resispec_core/gpu/kernels/{file}" in names
    assert {name.partition("/")[0] for name in names} == {
        "resispec_core",
        next(name.partition("/")[0] for name in names if ".dist-info/" in name),
    }
    needed = {
        line.removeprefix("Requires-Dist: ").split(">")[0]
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    }
    assert needed == CORE


def test_the_wheel_brings_the_pytest_plugin(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entries,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        text = archive.read(entries).decode()
    assert "[pytest11]\nresispec = resispec_core.testing.plugin" in text


def test_the_plugin_starts_light(installed: Path, tmp_path: Path) -> None:
    """It is imported whenever pytest starts, in projects that never use it."""
    heavy = ("torch", "transformers", "hypothesis", "scipy", "matplotlib", "cupy")
    program = f"import sys, resispec_core.testing.plugin; print([n for n in {heavy!r} if n in sys.modules])"
    done = python(program, installed, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_pytest_finds_the_plugin_by_itself(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from resispec_core import parse_law\n"
        "from resispec_core.testing import assert_exact\n"
        "def test_it():\n"
        "    assert_exact('specinfer', target=parse_law('1/3,2/3'), draft=parse_law('1/2,1/2'))\n"
    )
    program = "import sys, pytest; sys.exit(pytest.main(['-p', 'no:cacheprovider', '-p', 'no:xdist', '-q']))"
    done = python(program, installed, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "test_it.py::test_it specinfer: EXACT, 3 paths, TV = 0" in done.stdout


def test_the_sample_is_small_and_big_enough() -> None:
    files = list((ROOT / "resispec_core" / "llama" / "sample").iterdir())
    assert sum(file.stat().st_size for file in files) <= 6 * 10**6
