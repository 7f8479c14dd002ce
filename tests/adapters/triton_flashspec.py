"""flashspec's Triton acceptance kernel, unmodified, with a resampling step of ours; run with ``TRITON_INTERPRET=1``."""

import torch
from flashspec.kernels import verify_kernel

from resispec_core.adapters.triton import first_config, interpreted

first_config(verify_kernel._verify_acceptance_kernel)


@interpreted
def published(target, draft, candidates, uniforms):
    accepted, _ = verify_kernel.verify_tokens(
        draft.log()[None, None], target.log()[None, None], uniforms[None, :1], candidates[None]
    )
    if accepted[0, 0]:
        return candidates[0]
    residual = (target - draft).clamp(min=0)
    edges = residual.cumsum(0) / residual.sum()
    return torch.searchsorted(edges, uniforms[1:], right=True).clamp(max=int(residual.nonzero()[-1]))
