"""NVRTC compiles every configuration for sm_80 and sm_90: no spills, no fused or flushed arithmetic in the PTX."""

from __future__ import annotations

import re

import pytest

from resispec_core.gpu.compile import STAGES, Compiled, compiled, unavailable
from resispec_core.gpu.config import KernelConfig, configurations

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

# NVVM leaves fusing to the assembler: a product or sum without a rounding mode may become a fused multiply-add after
# the PTX, so its absence from the PTX proves nothing; with --fmad=false every one carries .rn.
FORBIDDEN = {
    "flushed subnormals": re.compile(r"\.ftz\b"),
    "fused multiply-add": re.compile(r"\bfma\.|\bmad\.[a-z]*\.?f(32|64)"),
    "arithmetic the assembler may fuse": re.compile(r"\b(add|sub|mul)\.f64\b"),
    "approximate arithmetic": re.compile(r"\.approx\b"),
    "float32 arithmetic": re.compile(r"\b(add|sub|mul|div|sqrt)(\.[a-z]+)*\.f32\b"),
}


def complaints(kernel: Compiled) -> list[str]:
    """What is wrong with one compiled kernel."""
    found = [name for name, pattern in FORBIDDEN.items() if pattern.search(kernel.ptx)]
    return found + ([f"{kernel.spilled_bytes} bytes spilled"] if kernel.spilled_bytes else [])


SUBJECTS = sorted({(c.rule, c.redistribution, c.budget, c.dtype) for c in configurations(80)})


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("subject", SUBJECTS, ids="-".join)
def test_configurations_compile_clean(subject: tuple[str, str, str, str], architecture: int) -> None:
    for config in configurations(architecture):
        if (config.rule, config.redistribution, config.budget, config.dtype) != subject:
            continue
        stages = STAGES if not config.resident else STAGES[1:]  # stage A does not depend on the layout
        for stage in stages:
            assert complaints(compiled(config, stage, architecture)) == [], f"{config.name} {stage}"


@pytest.mark.parametrize("cluster", [2, 8])
def test_other_cluster_sizes_compile_to_the_same_code(cluster: int) -> None:
    def body(size: int) -> str:
        ptx = compiled(KernelConfig("specinfer", cluster=size), "stage_b", 90).ptx
        return re.sub(r"\.reqnctapercluster[^\n]*|\.explicitcluster[^\n]*", "", ptx)

    assert body(cluster) == body(4)


def test_the_checks_see_what_they_forbid() -> None:
    """Planted faults, one a check."""
    clean = compiled(KernelConfig(), "stage_a", 90)
    for line in (
        "cvt.ftz.f64.f32 %fd1, %f1;",
        "fma.rn.f64 %fd1, %fd2, %fd3, %fd4;",
        "sqrt.approx.f32 %f1, %f2;",
        "mul.rn.f32 %f1, %f2, %f3;",
        "mul.f64 %fd1, %fd2, %fd3;",
        "mad.rn.f32 %f1, %f2, %f3, %f4;",
    ):
        assert complaints(Compiled(b"", clean.ptx + line, clean.log)) != []
    spilled = clean.log.replace("0 bytes spill stores", "8 bytes spill stores")
    assert complaints(Compiled(b"", clean.ptx, spilled)) == ["8 bytes spilled"]


def test_a_default_build_would_be_refused() -> None:
    """Without --fmad=false the assembler may fuse the same source: the flag is needed and the check can see it."""
    from cupy.cuda import nvrtc

    from resispec_core.gpu.compile import options
    from resispec_core.gpu.config import KERNELS

    program = nvrtc.createProgram((KERNELS / "stage_b.cu").read_text(), "stage_b.cu", (), ())
    kept = tuple(o for o in options(KernelConfig(), 90) if not o.startswith("--fmad"))
    nvrtc.compileProgram(program, kept)
    ptx = nvrtc.getPTX(program)
    text = ptx.decode() if isinstance(ptx, bytes) else ptx
    assert "arithmetic the assembler may fuse" in complaints(
        Compiled(b"", text, nvrtc.getProgramLog(program))
    )
