"""Recursive rejection in Triton, right and with planted faults; run with ``TRITON_INTERPRET=1``."""

import torch
import triton
import triton.language as tl

from resispec_core.adapters.triton import interpreted

RIGHT, INCLUSIVE, SCALAR, UNGUARDED, ONE_COIN = range(5)


@triton.jit
def verify(P, Q, DRAWN, COINS, OUT, V, N: tl.constexpr, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    ids = tl.arange(0, BLOCK)
    residual = tl.load(P + ids, mask=ids < V, other=0.0)
    q = tl.load(Q + ids, mask=ids < V, other=0.0)
    token = tl.full((), -1, tl.int32)
    for i in range(N):
        if token < 0:
            x = tl.load(DRAWN + i)
            here = ids == x
            px = tl.sum(tl.where(here, residual, 0.0), axis=0)
            qx = tl.sum(tl.where(here, q, 0.0), axis=0)
            scaled = tl.load(COINS + i) * qx
            if (scaled <= px) if FAULT == 1 else (scaled < px):
                token = x.to(tl.int32)
            else:
                residual = tl.maximum(residual - (qx if FAULT == 2 else q), 0.0)
                residual = tl.where(ids < V, residual / tl.sum(residual, axis=0), 0.0)
    if token < 0:
        coin = tl.load(COINS + (0 if FAULT == 4 else N))
        token = tl.sum((tl.cumsum(residual, axis=0) <= coin).to(tl.int32), axis=0)
        if FAULT != 3:  # the float32 sum may end below the largest coin
            token = tl.minimum(token, tl.max(tl.where(residual > 0, ids, 0), axis=0))
    tl.store(OUT, token)


def launcher(fault):
    def launch(target, draft, candidates, uniforms):
        out = torch.empty(1, dtype=torch.int32)
        size, n = target.numel(), candidates.numel()
        verify[(1,)](
            target, draft, candidates, uniforms, out, size,
            N=n, BLOCK=triton.next_power_of_2(size), FAULT=fault,
        )  # fmt: skip
        return out

    return interpreted(launch)


right, inclusive, scalar, unguarded, one_coin = map(launcher, (RIGHT, INCLUSIVE, SCALAR, UNGUARDED, ONE_COIN))
