"""The doctor says what is there and why the rest is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from resispec_core.cli.doctor import doctor
from resispec_core.gpu.doctor import report, why_no_device


def test_json_and_text_tell_the_same() -> None:
    found = json.loads(CliRunner().invoke(doctor, ["--json"]).output)
    assert found == json.loads(json.dumps(report()))
    text = CliRunner().invoke(doctor).output
    assert found["python"] in text
    assert (found["why_not"] or "GPU path           available") in text


def test_without_cupy_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert why_no_device() == "no GPU path: CuPy is not installed (pip install 'resispec-core[gpu]')"
    found = report()
    assert found["gpu_path"] is False
    assert found["kernels"]["compile"] is False
    assert found["device"] is None


@pytest.mark.skipif(why_no_device() is None, reason="there is a GPU: the script would run in full")
def test_the_device_script_confirms_nothing_without_a_device(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        ["sh", str(root / "tests" / "gpu" / "device_check.sh"), str(tmp_path)],
        env=os.environ | {"PYTHON": sys.executable, "PYTHONPATH": path},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert "no GPU path" in done.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["doctor.json"]
