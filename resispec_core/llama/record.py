"""Record the rows of a real target and draft over given texts into a store."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resispec_core import __version__
from resispec_core.errors import InputError
from resispec_core.llama import models
from resispec_core.llama.pair import Pair
from resispec_core.llama.positions import Position
from resispec_core.llama.prompts import BUILT_IN, Prompt, spread_indices
from resispec_core.llama.record_trees import Drafting, recorded_steps
from resispec_core.llama.store import LogitsStore, Row
from resispec_core.llama.writer import StoreWriter

CONTEXT_TOKENS = 8
Progress = Callable[[str, int, int], None]


def record(
    out: str | Path,
    *,
    target: str | Path = models.BUILT_IN,
    draft: str | Path | None = None,
    skip_layers: str | None = None,
    prompts: Sequence[Prompt] = BUILT_IN,
    positions_per_prompt: int = 7,
    rows_per_shard: int = 7,
    dtype: str = "float32",
    device: str = "cpu",
    drafting: Drafting | None = None,
    progress: Progress | None = None,
) -> LogitsStore:
    """Run both models over the prompts and store their next-token rows at evenly spread positions.

    ``target`` and ``draft`` are ``builtin``, a Hugging Face folder or a GGUF file; without ``draft`` the
    target with ``skip_layers`` left out (default 12-17, counted from 0) drafts. ``dtype`` is that of
    weights and activations; the log-softmax is taken in float32 and stored as fp16. ``progress(stage, done,
    total)`` is called before every stage and after every shard.

    With ``drafting`` every position is one speculation step: a tree drafted after it, with the rows of both models at
    its nodes (``tree_store``); position i draws with seed + i.

    A run that was interrupted is continued by the same call; one that is complete is opened, and no weights
    are loaded. Raises InputError before any weights are loaded wherever that is possible.

    Cost: one forward pass of each model per prompt (logits at the chosen positions only), and 4V bytes of
    disk per position, or 2V bytes for every node and again for every inner node of a tree (16 MB for 5x3 at
    V = 49,152).
    """
    if rows_per_shard < 1:
        raise InputError(f"rows per shard is {rows_per_shard}; pass at least 1")
    tell = progress or silent
    tell("reading tokenizer and configuration", 0, 0)
    pair = Pair(target, draft, skip_layers, dtype, device)
    tokenizer = pair.tokenizer
    token_ids = [[int(i) for i in tokenizer(prompt.text)["input_ids"]] for prompt in prompts]
    room = drafting.depth - 1 if drafting else 0
    planned = plan_positions(prompts, token_ids, positions_per_prompt, tokenizer, pair.context_limit - room)
    tell("hashing weights", 0, 0)
    settings = {
        **pair.settings(),
        "libraries": library_versions(),
        "dtype": "float16",
        "values": "natural log-probabilities",
        "positions_per_prompt": positions_per_prompt,
        "prompts": [
            {"name": prompt.name, "text": prompt.text, "token_ids": ids}
            for prompt, ids in zip(prompts, token_ids, strict=True)
        ],
        **({"drafting": drafting.to_json()} if drafting else {}),
    }
    writer = StoreWriter(Path(out), settings, planned, token_texts(tokenizer))
    if writer.done < len(planned):
        tell("loading models", writer.done, len(planned))
        pair.load()
        steps = recorded_steps(pair, token_ids, planned, writer.done, drafting) if drafting else None
        rows = recorded_rows(pair, token_ids, planned[writer.done :])
        while writer.done < len(planned):
            tell("recording", writer.done, len(planned))
            wanted = min(rows_per_shard, len(planned) - writer.done)
            if steps is not None:
                found = [next(steps) for _ in range(wanted)]
                target_rows = np.stack([row for _, rows_p, _ in found for row in rows_p])
                draft_rows = np.stack([row for _, _, rows_q in found for row in rows_q])
                writer.append(target_rows, draft_rows, [tree for tree, _, _ in found])
                continue
            shard = [next(rows) for _ in range(wanted)]
            writer.append(np.stack([row for row, _ in shard]), np.stack([row for _, row in shard]))
    tell("recording", writer.done, len(planned))
    return LogitsStore.open(out)


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress."""


def plan_positions(
    prompts: Sequence[Prompt], token_ids: Sequence[Sequence[int]], count: int, tokenizer: Any, limit: int
) -> list[Position]:
    """The positions to record, in row order; raises InputError naming a prompt too short or too long."""
    planned = []
    for number, (prompt, ids) in enumerate(zip(prompts, token_ids, strict=True)):
        if len(ids) > limit:
            raise InputError(
                f"prompt {prompt.name!r} has {len(ids)} tokens, the models take {limit}; shorten it"
            )
        try:
            indices = spread_indices(len(ids), count)
        except InputError as error:
            raise InputError(f"prompt {prompt.name!r}: {error}") from None
        for i in indices:
            context = tokenizer.decode(ids[max(0, i - CONTEXT_TOKENS) : i])
            planned.append(Position(number, i, context, ids[i], tokenizer.decode([ids[i]])))
    return planned


def recorded_rows(
    pair: Pair, token_ids: Sequence[Sequence[int]], planned: Sequence[Position]
) -> Iterator[tuple[Row, Row]]:
    """Yield the fp16 rows of target and draft at the planned positions, one forward pass a prompt."""
    for prompt in dict.fromkeys(position.prompt for position in planned):
        indices = [position.index for position in planned if position.prompt == prompt]
        ids = token_ids[prompt]
        yield from zip(
            log_probabilities(pair.target, ids, indices),
            log_probabilities(pair.draft, ids, indices),
            strict=True,
        )


def log_probabilities(model: Any, token_ids: Sequence[int], indices: Sequence[int]) -> list[Row]:
    """Natural log-probabilities of token i given those before it, for every i in ``indices``: (V,) fp16.

    The log-softmax is taken in float32. Raises InputError when the model returns NaN.
    Cost: one forward pass over the tokens before the last index; logits at the chosen positions only.
    """
    torch, _ = models.libraries()
    with torch.inference_mode():
        tokens = torch.tensor([list(token_ids[: max(indices)])], device=model.device)
        hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state[0]
        logits = model.lm_head(hidden[[i - 1 for i in indices]])
        rows = torch.log_softmax(logits.float(), dim=-1).to(torch.float16).cpu().numpy()
    for i, row in zip(indices, rows, strict=True):
        if np.isnan(row).any():
            raise InputError(
                f"the model returns NaN at token {i} of a prompt; its weights are damaged, or use float32"
            )
    return list(rows)


def token_texts(tokenizer: Any) -> list[str]:
    """The text of every token id; the tokenizer's name of it where that is an unfinished character."""
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    texts = [tokenizer.decode([i]) for i in range(len(tokenizer))]
    return [str(name) if "\ufffd" in text else text for name, text in zip(names, texts, strict=True)]


def library_versions() -> dict[str, str]:
    """Versions of everything that computes or writes the rows."""
    versions = {"python": platform.python_version(), "resispec-core": __version__}
    for name in ("numpy", "safetensors", "torch", "transformers", "tokenizers", "gguf"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions
