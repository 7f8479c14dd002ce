"""The GPU twins of the rules: array-level (any namespace) and fused CUDA kernels. See docs/gpu.md.

Importing this package imports neither CuPy nor a driver; only running on a device does.
"""

from resispec_core.gpu.api import deterministic, resispec, shaped, single_draft, specinfer, verify
from resispec_core.gpu.array import Decisions
from resispec_core.gpu.status import NodeStatus

__all__ = [
    "Decisions",
    "NodeStatus",
    "deterministic",
    "resispec",
    "shaped",
    "single_draft",
    "specinfer",
    "verify",
]
