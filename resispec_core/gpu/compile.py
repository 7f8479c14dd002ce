"""NVRTC compilation of the kernels. Needs the library, not a device.

The cubin is made here and loaded as it is: CuPy's own compiler appends ``-ftz=true`` after a user's options, which
would flush subnormal float32 inputs on the GPU alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from resispec_core.gpu.config import KERNELS, KernelConfig

STAGES = ("stage_a", "stage_b")


@dataclass(frozen=True)
class Compiled:
    """One kernel of one configuration for one architecture."""

    cubin: bytes
    ptx: str
    log: str

    @property
    def registers(self) -> int:
        return int(self._reported(r"Used (\d+) registers"))

    @property
    def spilled_bytes(self) -> int:
        stores = self._reported(r"(\d+) bytes spill stores")
        return int(stores) + int(self._reported(r"(\d+) bytes spill loads"))

    def _reported(self, pattern: str) -> str:
        found = re.search(pattern, self.log)
        if found is None:
            raise RuntimeError(f"NVRTC's log does not say {pattern!r}; it says: {self.log!r}")
        return found[1]


def unavailable() -> str | None:
    """Why NVRTC cannot be used here, or None."""
    try:
        import cupy

        cupy.cuda.nvrtc.getVersion()
    except ImportError:
        return "CuPy is not installed (pip install 'resispec-core[gpu]')"
    except Exception as error:  # the loader's own exception types differ between CuPy versions
        return f"NVRTC cannot be loaded: {error}"
    return None


def options(config: KernelConfig, architecture: int) -> tuple[str, ...]:
    """The NVRTC options: no fused multiply-add, subnormals kept, and the assembler's report in the log."""
    defines = tuple(f"-D{name}={value}" for name, value in config.defines().items())
    return (
        f"--gpu-architecture=sm_{architecture}", "--std=c++17", "--fmad=false", "--ftz=false",
        "--ptxas-options=-v", f"-I{KERNELS}", *defines,
    )  # fmt: skip


@cache
def compiled(config: KernelConfig, stage: str, architecture: int) -> Compiled:
    """``stage`` (``stage_a`` or ``stage_b``) for sm_``architecture``. About half a second; kept in memory."""
    from cupy.cuda import nvrtc

    source = (KERNELS / f"{stage}.cu").read_text(encoding="utf-8")
    program = nvrtc.createProgram(source, f"{stage}.cu", (), ())
    try:
        try:
            nvrtc.compileProgram(program, options(config, architecture))
        except nvrtc.NVRTCError as error:
            raise RuntimeError(f"{config.name} {stage}: {nvrtc.getProgramLog(program)}") from error
        ptx = nvrtc.getPTX(program)
        text = ptx.decode() if isinstance(ptx, bytes) else ptx
        return Compiled(nvrtc.getCUBIN(program), text, nvrtc.getProgramLog(program))
    finally:
        nvrtc.destroyProgram(program)
