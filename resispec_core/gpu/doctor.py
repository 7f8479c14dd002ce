"""What this machine offers the GPU path, and why it is unavailable where it is."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

from resispec_core.gpu import compile as nvrtc
from resispec_core.gpu.config import KernelConfig

PACKAGES = (
    "numpy",
    "scipy",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "nvidia-cuda-nvrtc",
    "torch",
    "transformers",
    "gguf",
)


def why_no_device() -> str | None:
    """Why the fused kernels cannot run here, in one sentence; None where they can."""
    try:
        import cupy
    except ImportError:
        return "no GPU path: CuPy is not installed (pip install 'resispec-core[gpu]')"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no GPU path: CuPy is installed, but CUDA says {error}"
    if count == 0:
        return "no GPU path: CuPy is installed, but there is no CUDA device"
    capability = int(cupy.cuda.Device().compute_capability)
    if capability < 80:
        return f"no GPU path: the device is sm_{capability}; the kernels need sm_80 or newer"
    return None


def report() -> dict[str, Any]:
    """Packages, driver, device, whether the kernels compile, and why the GPU path is unavailable."""
    why = why_no_device()
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in PACKAGES},
        "device": None if why else _device(),
        "kernels": _kernels(),
        "gpu_path": why is None,
        "why_not": why,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _device() -> dict[str, Any]:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "name": properties["name"].decode(),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "memory_bytes": int(properties["totalGlobalMem"]),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
    }


def _kernels() -> dict[str, Any]:
    """Whether one configuration compiles, for which NVRTC needs no device."""
    why = nvrtc.unavailable()
    if why:
        return {"compile": False, "why_not": why}
    try:
        kernel = nvrtc.compiled(KernelConfig("specinfer", cluster=4), "stage_b", 90)
    except RuntimeError as error:
        return {"compile": False, "why_not": str(error)}
    return {
        "compile": True,
        "architecture": "sm_90",
        "registers": kernel.registers,
        "spilled": kernel.spilled_bytes,
    }
