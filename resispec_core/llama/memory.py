"""How much memory a model needs and how much there is, before its weights are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama import models

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def weight_bytes(config: Any, dtype: str, layers: int | None = None) -> int:
    """Bytes of a Llama's weights in ``dtype``, from its configuration; ``layers`` counts the decoder layers kept."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    size = getattr(config, "head_dim", None) or hidden // heads
    attention = 2 * hidden * size * (heads + config.num_key_value_heads)
    layer = attention + 3 * hidden * config.intermediate_size + 2 * hidden
    tables = config.vocab_size * hidden * (1 if config.tie_word_embeddings else 2)
    count = config.num_hidden_layers if layers is None else layers
    return (tables + count * layer + hidden) * BYTES[dtype]


def free_bytes(device: str) -> int | None:
    """Memory that can still be taken on ``device``; None where the system does not say."""
    if device.startswith("cuda"):
        torch, _ = models.libraries()
        try:
            return int(torch.cuda.mem_get_info(torch.device(device))[0])
        except (RuntimeError, AssertionError):
            return None  # no such device: loading says so
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def check_memory(needed: int, device: str, what: str) -> None:
    """Refuse weights that cannot fit. Activations and caches come on top: passing is no promise."""
    free = free_bytes(device)
    if free is not None and needed > free:
        raise InputError(
            f"{what} needs {needed / 2**30:.1f} GiB for its weights, and {device} has {free / 2**30:.1f} GiB free: "
            "choose a smaller dtype (--dtype bfloat16), a smaller model, or free some memory"
        )
