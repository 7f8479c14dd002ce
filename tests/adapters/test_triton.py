"""Optional: Triton kernels of our own on the tape, under Triton's interpreter; a process of its own for each audit."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import resispec_core
from resispec_core.adapters.triton import VARIABLE, first_config, interpreted, require_interpreter
from resispec_core.errors import InputError

KERNELS = Path(__file__).with_name("triton_kernels.py")
MISSING = find_spec("triton") is None
needs_triton = pytest.mark.skipif(
    MISSING, reason="Triton is not installed; tests/adapters/triton.txt says how to run this"
)
slow = pytest.mark.skipif(
    os.environ.get("RESISPEC_SLOW") != "1", reason="RESISPEC_SLOW=1 runs the other faults"
)
MASKED = ("--target", "0,1/5,3/10,1/2", "--draft", "2/5,3/10,1/5,1/10")
OPPOSITE = ("--target", "1/10,1/5,3/10,2/5", "--draft", "2/5,3/10,1/5,1/10")


def audit(name, laws=MASKED, interpret=True, file=KERNELS):
    """``resispec audit`` on one of the kernels: (exit code, its JSON)."""
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    paths = (str(Path(resispec_core.__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [sys.executable, "-c", "from resispec_core.cli.main import main; main()", "audit"]
    command += [f"{file}:{name}", "--signature", "kernel", "--candidates", "1", *laws, "--json"]
    done = subprocess.run(
        command,
        env=environment | ({VARIABLE: "1"} if interpret else {}),
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


@needs_triton
def test_the_right_kernel_is_not_refuted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, found = audit("right")
    assert (code, found["verdict"]) == (3, "NOT_REFUTED")
    worst = found["worst"]
    assert worst["total_variation"] <= worst["rounding"]
    assert worst["findings"] == []
    assert worst["calls"] > 500


FAULTS = {
    "inclusive": (MASKED, "token 0, which the target gives probability zero"),
    "scalar": (MASKED, None),
    "unguarded": (OPPOSITE, "outside the vocabulary"),
    "one_coin": (MASKED, None),
}


@needs_triton
@pytest.mark.parametrize(
    "name", ["inclusive", *(pytest.param(name, marks=slow) for name in FAULTS if name != "inclusive")]
)
def test_planted_faults_are_found(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    laws, finding = FAULTS[name]
    code, found = audit(name, laws)
    assert (code, found["verdict"]) == (1, "BIASED")
    worst = found["worst"]
    if finding is None:
        assert worst["total_variation"] > 0.01
    else:
        assert any(finding in text for text in worst["findings"])
    assert Path(found["written"]).exists()


@needs_triton
@pytest.mark.skipif(find_spec("flashspec") is None, reason="flashspec is not installed; see packages.txt")
def test_a_published_kernel_is_not_refuted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, found = audit("published", file=KERNELS.with_name("triton_flashspec.py"))
    assert (code, found["verdict"]) == (3, "NOT_REFUTED")
    assert found["worst"]["findings"] == []
    assert found["worst"]["total_variation"] <= found["worst"]["rounding"]


@needs_triton
def test_without_the_interpreter_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, found = audit("right", interpret=False)
    assert code == 2
    assert f"set {VARIABLE}=1" in found["error"]


@pytest.mark.skipif(not MISSING, reason="Triton is installed")
def test_a_missing_triton_is_named():
    with pytest.raises(InputError, match="pip install triton"):
        require_interpreter()


def test_only_autotuned_kernels_have_a_first_config():
    kernel = SimpleNamespace(configs=["a", "b"])
    assert first_config(kernel).configs == ["a"]
    with pytest.raises(InputError, match="has no configurations"):
        first_config(print)


def test_wrapping_imports_nothing():
    code = (
        "import sys, resispec_core.adapters.triton as t; t.interpreted(print);"
        "print([name for name in ('triton', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_wrapper_hands_over_tensors(monkeypatch):
    import torch

    import resispec_core.adapters.triton as adapter

    monkeypatch.setattr(adapter, "require_interpreter", lambda: None)
    seen = []

    @interpreted
    def launch(*given):
        seen.extend(given)
        return torch.tensor([2])

    assert launch([0.5, 0.5], [0.25, 0.75], [1], [0.125, 0.75]) == 2
    kinds = [(tensor.dtype, tuple(tensor.shape)) for tensor in seen]
    f32, ids = torch.float32, torch.int64
    assert kinds == [(f32, (2,)), (f32, (2,)), (ids, (1,)), (f32, (2,))]
