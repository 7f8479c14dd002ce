"""A target and its draft: checked against one another before any weights are loaded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama import models
from resispec_core.llama.memory import check_memory, weight_bytes
from resispec_core.llama.prompts import Prompt

DTYPES = ("float32", "bfloat16", "float16")


class Pair:
    """The two models: what they are from the start, their weights after :meth:`load`."""

    def __init__(
        self, target: str | Path, draft: str | Path | None, skipped: str | None, dtype: str, device: str
    ) -> None:
        if draft is not None and skipped is not None:
            raise InputError(
                f"draft {draft} and skip_layers {skipped!r} exclude each other: pass one of them"
            )
        if dtype not in DTYPES:
            raise InputError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
        self._dtype, self._device = dtype, device
        self._target = models.find_model(target)
        self._draft = models.find_model(draft) if draft is not None else None
        self._skipped = [] if self._draft else models.parse_layers(skipped or models.DEFAULT_SKIP)
        config = self._config = models.load_config(self._target)
        self._layers = int(config.num_hidden_layers)
        self._draft_layers = self._layers - len(self._skipped)
        self.vocabulary = int(config.vocab_size)
        self.context_limit = int(config.max_position_embeddings)
        if self._draft is None:
            models.check_layers(self._skipped, self._layers)
        self.tokenizer = models.load_tokenizer(self._target)
        self.tokenizer_sha256 = tokenizer_hash(self.tokenizer)
        if len(self.tokenizer) > self.vocabulary:
            raise InputError(
                f"the tokenizer of {self._target.id} has {len(self.tokenizer)} tokens, its model "
                f"{self.vocabulary}: they do not belong together"
            )
        if self._draft is not None:
            self._check_draft(self._draft)

    def _check_draft(self, source: models.ModelSource) -> None:
        config = self._draft_config = models.load_config(source)
        if config.vocab_size != self.vocabulary:
            raise InputError(
                f"vocabularies differ: target {self._target.id} has {self.vocabulary} tokens, "
                f"draft {source.id} has {config.vocab_size}; speculative sampling needs one vocabulary: "
                "choose a draft of the same family"
            )
        theirs = models.load_tokenizer(source)
        if tokenizer_hash(theirs) != self.tokenizer_sha256:
            raise InputError(
                f"vocabularies differ: {first_token_difference(self.tokenizer, theirs)} "
                f"(target {self._target.id}, draft {source.id}); choose a draft with the target's tokenizer"
            )
        self._draft_layers = int(config.num_hidden_layers)
        self.context_limit = min(self.context_limit, int(config.max_position_embeddings))

    def settings(self) -> dict[str, Any]:
        """What decides the rows, for ``store.json``. Cost: hashes the weights."""
        target = {"id": self._target.id, "files": self._target.hashes(), "layers": self._layers}
        draft = target if self._draft is None else {"id": self._draft.id, "files": self._draft.hashes()}
        draft = {"id": draft["id"], "files": draft["files"], "layers_skipped": self._skipped}
        return {
            "target": target,
            "draft": {**draft, "layers": self._draft_layers},
            "tokenizer_sha256": self.tokenizer_sha256,
            "vocabulary_size": self.vocabulary,
            "compute": {"dtype": self._dtype, "device": self._device},
        }

    def load(self) -> None:
        """Read the weights: ``target`` and ``draft`` are LlamaForCausalLM afterwards; refuses what cannot fit."""
        needed = weight_bytes(self._config, self._dtype)
        if self._draft is not None:
            needed += weight_bytes(self._draft_config, self._dtype)
        check_memory(needed, self._device, f"target {self._target.id} with its draft")
        options = {"dtype": self._dtype, "device": self._device}
        self.target = models.load_model(self._target, **options)
        if self._draft is None:
            self.draft = models.skip_layers(self.target, self._skipped)
        else:
            self.draft = models.load_model(self._draft, **options)

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; raises InputError for one without a token."""
        ids = [int(token) for token in self.tokenizer(prompt.text)["input_ids"]]
        if not ids:
            raise InputError(f"prompt {prompt.name!r} has no token; a first new token needs one before it")
        return ids

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """The tokens at which the target's text ends, from its configuration."""
        stop = self._config.eos_token_id
        return () if stop is None else tuple(stop) if isinstance(stop, list) else (int(stop),)


def tokenizer_hash(tokenizer: Any) -> str:
    """SHA-256 of the JSON list of token names in id order: what an id means, whatever file it is from."""
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    return hashlib.sha256(json.dumps(names, ensure_ascii=False).encode()).hexdigest()


def first_token_difference(target: Any, draft: Any) -> str:
    """Name the first token id that two tokenizers read differently."""
    if len(target) != len(draft):
        return f"the tokenizers have {len(target)} and {len(draft)} tokens"
    pairs = zip(*(tok.convert_ids_to_tokens(range(len(tok))) for tok in (target, draft)), strict=True)
    return next(
        (f"token {i} is {a!r} and {b!r}" for i, (a, b) in enumerate(pairs) if a != b), "no token differs"
    )
