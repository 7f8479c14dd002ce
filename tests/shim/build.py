"""Compile the kernels with g++ against the host shim, and run batches on the result.

Three builds: ``plain`` is a shared library called through ctypes; ``asan`` (AddressSanitizer and UBSan) and
``tsan`` are programs that read one stored case and write its answer, so that no sanitizer is loaded into Python.
Builds are cached in the temporary directory under a hash of every source and flag.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from resispec_core.gpu.array import Decisions
from resispec_core.gpu.config import HAS_DRAFT_NORM, HAS_TARGET_NORM, KERNELS, LIST_ALL, KernelConfig, Layout

HERE = Path(__file__).parent
SANITIZERS = {
    "plain": [],
    "asan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"],
    "tsan": ["-fsanitize=thread"],
}
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=0:detect_leaks=0",
    "TSAN_OPTIONS": "exitcode=66:halt_on_error=1:history_size=2",
    "UBSAN_OPTIONS": "print_stacktrace=0",
}


class ShimError(AssertionError):
    """The kernel did something no GPU promises to survive; the message is the shim's or the sanitizer's."""


def unavailable() -> str | None:
    """Why the kernels cannot be built here, or None."""
    if platform.machine() != "x86_64":
        return f"the fiber shim is written for x86-64, this is {platform.machine()}"
    if shutil.which("g++") is None:
        return "g++ is not installed"
    return None


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-4000:]}")


@cache
def _root() -> Path:
    path = Path(tempfile.gettempdir()) / f"resispec-shim-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _cached(key: str, suffix: str, make) -> Path:
    """``make(path)`` once per key; safe against a second process doing the same."""
    final = _root() / (hashlib.sha256(key.encode()).hexdigest()[:24] + suffix)
    if not final.exists():
        with tempfile.TemporaryDirectory(dir=_root()) as scratch:
            fresh = Path(scratch) / final.name
            make(fresh)
            fresh.replace(final)
    return final


def _text(folder: Path) -> str:
    sources = sorted(path for path in folder.iterdir() if path.suffix in (".cu", ".cuh", ".h", ".cpp"))
    return "\0".join(path.read_text() for path in sources)


def build(config: KernelConfig, flavour: str = "plain", kernels: Path = KERNELS) -> Path:
    """The compiled library (``plain``) or program (``asan``, ``tsan``)."""
    common = ["g++", "-std=c++17", "-O1", "-g1", "-ffp-contract=off", "-fPIC", "-Wall", "-Wextra"]
    common += ["-Wno-unused-parameter", "-Werror"]
    scheduler_source = (HERE / "fibers.cpp").read_text() + (HERE / "cuda_shim.h").read_text()

    def scheduler(path: Path) -> None:
        _run([*common, "-O2", "-c", str(HERE / "fibers.cpp"), "-o", str(path)])

    fibers = _cached(f"{common}{scheduler_source}", ".o", scheduler)
    defines = [f"-D{name}={value}" for name, value in config.defines().items()]
    flags = [*SANITIZERS[flavour], *defines, f"-I{HERE}", f"-I{kernels}"]
    flags += ["-shared"] if flavour == "plain" else ["-DRS_RUNNER"]

    def link(path: Path) -> None:
        _run([*common, *flags, str(HERE / "launch.cpp"), str(fibers), "-o", str(path)])

    key = f"{common}{SANITIZERS[flavour]}{defines}{_text(kernels)}{_text(HERE)}"
    return _cached(key, ".so" if flavour == "plain" else "", link)


class Call(ctypes.Structure):
    """``Call`` of common.cuh."""

    _fields_ = (
        *(
            (name, ctypes.c_void_p)
            for name in ("target", "draft", "target_norm", "draft_norm", "tokens", "coins")
        ),
        ("target_stride", ctypes.c_longlong),
        ("draft_stride", ctypes.c_longlong),
        ("inverse_temperature", ctypes.c_double),
        *((name, ctypes.c_int) for name in ("nodes", "vocabulary", "candidates", "flags", "slice")),
        *((name, ctypes.c_void_p) for name in ("accepted", "token", "status", "list", "listed")),
    )


@dataclass(frozen=True)
class Case:
    """One batch as the kernels take it: raw rows (float32, or uint16 bit patterns), contiguous."""

    target: np.ndarray
    draft: np.ndarray
    tokens: np.ndarray
    coins: np.ndarray
    target_norm: np.ndarray | None = None
    draft_norm: np.ndarray | None = None
    temperature: float = 1.0
    validate: str = "read"

    def flags(self, config: KernelConfig) -> int:
        """The launch flags; logits whose normaliser is missing force every node to stage B."""
        norms = (self.target_norm, self.draft_norm)[: 1 if config.rule == "deterministic" else 2]
        lazy = config.logits and any(norm is None for norm in norms)
        bits = HAS_TARGET_NORM * (self.target_norm is not None) + HAS_DRAFT_NORM * (
            self.draft_norm is not None
        )
        return bits + LIST_ALL * (lazy or self.validate == "all")

    def arrays(self) -> tuple[np.ndarray | None, ...]:
        return self.target, self.draft, self.target_norm, self.draft_norm, self.tokens, self.coins


def run(
    config: KernelConfig,
    case: Case,
    layout: Layout,
    *,
    flavour: str = "plain",
    seed: int = 0,
    hold: int = -1,
    kernels: Path = KERNELS,
) -> Decisions:
    """The kernels' answers; ``ShimError`` where they misbehaved.

    ``seed``: 0 runs threads in order, any other value shuffles them; ``hold``: a warp that runs only when no
    other can.
    """
    program = build(config, flavour, kernels)
    nodes, vocabulary = case.target.shape
    rows = 1 if config.rule == "deterministic" else 2
    shared = layout.shared_bytes(case.target.itemsize, rows)
    if flavour != "plain":
        return _run_program(program, config, case, layout, shared, seed, hold)
    accepted = np.full(nodes, 77, np.int64)
    token = np.full(nodes, 77, np.int64)
    status = np.full(nodes, 77, np.int32)
    scratch, listed = np.zeros(nodes, np.int32), np.zeros(1, np.int32)
    pointers = [None if a is None else a.ctypes.data for a in case.arrays()]
    call = Call(
        *pointers, case.target.strides[0] // case.target.itemsize, case.draft.strides[0] // case.draft.itemsize,
        1.0 / case.temperature, nodes, vocabulary, case.tokens.shape[1], case.flags(config), layout.slice,
        *(a.ctypes.data for a in (accepted, token, status, scratch, listed)),
    )  # fmt: skip
    library = _load(program)
    wrong = library.rs_verify(ctypes.byref(call), layout.threads, layout.cluster, shared, seed, hold)
    if wrong:
        raise ShimError(wrong.decode())
    return Decisions(accepted, token, status)


@cache
def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.rs_verify.restype = ctypes.c_char_p
    library.rs_verify.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 3, ctypes.c_ulonglong, ctypes.c_int]
    return library


def _run_program(
    program: Path, config: KernelConfig, case: Case, layout: Layout, shared: int, seed: int, hold: int
) -> Decisions:
    nodes, vocabulary = case.target.shape
    head = [nodes, vocabulary, case.tokens.shape[1], case.flags(config), layout.slice, vocabulary, vocabulary]
    head += [layout.threads, layout.cluster, shared, seed, hold]
    with tempfile.TemporaryDirectory(dir=_root()) as scratch:
        given, answer = Path(scratch) / "case", Path(scratch) / "answer"
        with given.open("wb") as file:
            np.array(head, np.int64).tofile(file)
            np.array([1.0 / case.temperature]).tofile(file)
            for array in case.arrays():
                size = -1 if array is None else array.nbytes
                np.array([size], np.int64).tofile(file)
                if array is not None:
                    np.ascontiguousarray(array).tofile(file)
        done = subprocess.run(
            [str(program), str(given), str(answer)], capture_output=True, text=True, env={**os.environ, **ENVIRONMENT},
            check=False, timeout=120,
        )  # fmt: skip
        if done.returncode:
            raise ShimError(f"exit {done.returncode}: {done.stderr[-6000:]}")
        raw = answer.read_bytes()
    split = np.frombuffer(raw, np.int64, 2 * nodes)
    return Decisions(split[:nodes], split[nodes:], np.frombuffer(raw, np.int32, nodes, 16 * nodes))
