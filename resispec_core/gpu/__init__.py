"""The GPU twins of the rules: array-level (any namespace) and fused CUDA kernels. See docs/gpu.md.

Importing this package imports neither CuPy nor a driver; only running on a device does.
"""

from resispec_core.gpu.array import Decisions, deterministic, resispec, shaped, single_draft, specinfer
from resispec_core.gpu.rows import Policy
from resispec_core.gpu.status import NodeStatus

__all__ = [
    "Decisions",
    "NodeStatus",
    "Policy",
    "deterministic",
    "resispec",
    "shaped",
    "single_draft",
    "specinfer",
]
