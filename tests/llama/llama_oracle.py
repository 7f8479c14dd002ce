"""A Llama forward pass written out by hand in float64, to hold the recorded rows against.

It shares nothing with the recorder or with transformers but the weights.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np


def _norm(x: Any, weight: Any, eps: float) -> Any:
    import torch

    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight.double()


def _turn(x: Any, theta: float) -> Any:
    """Rotary position embedding of x (heads, time, size): halves are paired, as in the Llama layout."""
    import torch

    time, size = x.shape[-2:]
    frequency = theta ** (-torch.arange(0, size, 2).double() / size)
    angle = torch.outer(torch.arange(time).double(), frequency)
    cos, sin = angle.cos(), angle.sin()
    low, high = x[..., : size // 2], x[..., size // 2 :]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


def log_laws(model: Any, token_ids: Sequence[int], skipped: Collection[int] = ()) -> np.ndarray:
    """Log-probabilities after every token, (time, V) float64, with some decoder layers left out."""
    import torch

    config = model.config
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    theta, eps = config.rope_parameters["rope_theta"], config.rms_norm_eps
    weights = {name: weight.detach() for name, weight in model.state_dict().items()}
    time = len(token_ids)
    size = config.hidden_size // heads
    masked = torch.full((time, time), -math.inf, dtype=torch.float64).triu(1)
    x = weights["model.embed_tokens.weight"][torch.tensor(token_ids)].double()
    for i in range(config.num_hidden_layers):
        if i in skipped:
            continue
        layer = {
            name.removeprefix(f"model.layers.{i}.").removesuffix(".weight"): weight.double()
            for name, weight in weights.items()
            if name.startswith(f"model.layers.{i}.")
        }
        h = _norm(x, layer["input_layernorm"], eps)
        q, k, v = (
            (h @ layer[f"self_attn.{name}_proj"].T).view(time, -1, size).transpose(0, 1) for name in "qkv"
        )
        k, v = (part.repeat_interleave(heads // groups, dim=0) for part in (_turn(k, theta), v))
        attention = (_turn(q, theta) @ k.transpose(1, 2) / math.sqrt(size) + masked).softmax(-1)
        x = x + (attention @ v).transpose(0, 1).reshape(time, -1) @ layer["self_attn.o_proj"].T
        h = _norm(x, layer["post_attention_layernorm"], eps)
        gate = h @ layer["mlp.gate_proj"].T
        x = x + (gate * torch.sigmoid(gate) * (h @ layer["mlp.up_proj"].T)) @ layer["mlp.down_proj"].T
    x = _norm(x, weights["model.norm.weight"], eps)
    return (x @ weights["lm_head.weight"].double().T).log_softmax(-1).numpy()


def fp16_tolerance(exact: np.ndarray, model: Any) -> np.ndarray:
    """How far a stored row may be from the exact log-probabilities, entry by entry.

    Rounding to fp16 moves a value by at most 2^-11 of itself (below 2^-14 by 2^-25). Before that, the
    float32 forward pass: each layer adds to the residual stream with sums of at most K = intermediate_size
    terms, whose rounding errors of 2^-24 grow like sqrt(K) when they are independent; over the layers and
    the head that is at most (layers + 1) sqrt(K) 2^-24, relative to the logits, whose largest size is taken
    from the row's own span. The factor 8 covers what normalisation and attention do to an error on its way.
    """
    config = model.config
    span = float(np.ptp(exact))
    forward = 8 * (config.num_hidden_layers + 1) * math.sqrt(config.intermediate_size) * 2.0**-24 * span
    return 2.0**-11 * np.abs(exact) + 2.0**-25 + forward
