"""The public rules: named, checked, on whichever layer fits the arrays.

Argument order is that of the reference rules' ``verify``. Every function verifies N tree nodes at once:

- ``target``, ``draft``: (N, V) rows, float32, bfloat16 or float16 (float64 on the array layer), probabilities or
  logits, from CuPy, NumPy or torch (DLPack, no copy); contiguous along V; V up to 2^18.
- ``tokens``: (N, b) int64 or int32 candidate ids, 1 ≤ b ≤ 8.
- ``coins``: (N, b + 1) float64 or float32 uniforms in [0, 1): coin i decides candidate i, the last one resamples.
- ``target_norm``, ``draft_norm``: (N,) row sums, or log-sum-exp of the logits over T. Probabilities without them must
  sum to one within 1e-3, and the law is off by as much as they do not. Logits without them are read in full.
- ``validate``: "read" checks what a node needs; "all" reads and checks every row.
- ``layer``: "fused" kernels (CuPy arrays), the "array" layer (any namespace), or "auto".

Returns ``Decisions``: accepted index or −1, token, ``NodeStatus``; a bad node has token −1 and says why.
Raises ``InputError`` for a wrong dtype, shape, device or stride. Cost on a device: two launches; one read of the rows
of the nodes that need them, and none of the others.
"""

from __future__ import annotations

from typing import Any

from resispec_core.errors import InputError
from resispec_core.gpu import array, fused
from resispec_core.gpu.array import Decisions
from resispec_core.gpu.checks import checked

LAYERS = ("auto", "fused", "array")


def specinfer(target: Any, draft: Any, tokens: Any, coins: Any, **options: Any) -> Decisions:
    """Recursive rejection on i.i.d. candidates: min(1, R/q), then norm((R − q)+). Exact up to rounding.

    Source: SpecInfer (2305.09781), Algorithm 2.
    """
    return verify("specinfer", target, draft, tokens, coins, **options)


def single_draft(target: Any, draft: Any, tokens: Any, coins: Any, **options: Any) -> Decisions:
    """Speculative sampling of one drafted token (Leviathan et al.; Chen et al.). Exact up to rounding."""
    return verify("single_draft", target, draft, tokens, coins, **options)


def deterministic(target: Any, draft: Any, tokens: Any, coins: Any, **options: Any) -> Decisions:
    """Fixed candidates (EAGLE-2 siblings, lookup drafts): accept with R(x); a rejection removes x.

    The draft row is never read and may be None. Exact up to rounding.
    """
    return verify("deterministic", target, draft, tokens, coins, **options)


def resispec(
    target: Any, draft: Any, tokens: Any, coins: Any, redistribution: str = "proportional", budget: str = "local",
    **options: Any,
) -> Decisions:  # fmt: skip
    """ResiSpec as published (2608.24411, Algorithm 1), with its open points named. Not exact.

    ``redistribution``: proportional, waterfill or uniform; ``budget``: local or eq13.
    """
    return verify(
        "resispec", target, draft, tokens, coins, redistribution=redistribution, budget=budget, **options
    )


def shaped(target: Any, draft: Any, tokens: Any, coins: Any, **options: Any) -> Decisions:
    """Exact residual shaping, the repair of ResiSpec, on i.i.d. candidates. Exact up to rounding."""
    return verify("shaped", target, draft, tokens, coins, **options)


def verify(
    rule: str, target: Any, draft: Any, tokens: Any, coins: Any, *, redistribution: str = "proportional",
    budget: str = "local", kind: str = "probabilities", temperature: float = 1.0, target_norm: Any = None,
    draft_norm: Any = None, validate: str = "read", layer: str = "auto",
) -> Decisions:  # fmt: skip
    """Runs the rule called ``rule``; the module docstring says what everything means."""
    if layer not in LAYERS:
        raise InputError(f"layer {layer!r} is unknown; use {', '.join(LAYERS)}")
    given = checked(
        rule, target, draft, tokens, coins, redistribution=redistribution, budget=budget, kind=kind,
        temperature=temperature, target_norm=target_norm, draft_norm=draft_norm, validate=validate,
    )  # fmt: skip
    on_device = given.xp.__name__ == "cupy"
    if layer == "fused" and not on_device:
        raise InputError(
            f"layer 'fused' needs CuPy (or CUDA torch) arrays; these are {given.xp.__name__}: use layer='array'"
        )
    if on_device and layer != "array":
        return fused.verify(rule, given, redistribution, budget)
    return array.verify(
        rule, given.target, given.draft, given.tokens, given.coins, redistribution=redistribution, budget=budget,
        target_norm=given.target_norm, draft_norm=given.draft_norm, policy=given.policy,
    )  # fmt: skip
