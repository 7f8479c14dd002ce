"""Decode a list of prompts with one method, each result kept as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama.decode import Generation, check_fits, generate
from resispec_core.llama.drafters import Drafter, Sampling
from resispec_core.llama.journal import Journal
from resispec_core.llama.method import Method
from resispec_core.llama.pair import Pair
from resispec_core.llama.prompts import STARTS, Prompt
from resispec_core.llama.record import Progress, library_versions, silent


@dataclass(frozen=True)
class Plan:
    """Everything that decides the tokens, besides the models: prompt i is decoded with seed + i."""

    method: Method
    sampling: Sampling = field(default_factory=Sampling)
    max_new_tokens: int = 32
    seed: int = 0
    prompts: tuple[Prompt, ...] = STARTS

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "method": self.method.to_json(),
            "sampling": asdict(self.sampling),
            "max_new_tokens": self.max_new_tokens,
            "seed": self.seed,
            "prompts": [asdict(prompt) for prompt in self.prompts],
        }


def decode(
    pair: Pair, plan: Plan, *, out: Path | None = None, progress: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """The result of every prompt, in order; those already in the journal ``out`` are not computed again.

    Everything that can be refused is refused before weights are loaded: this is a generator, so that is at the first
    ``next``. Results: ``prompt``, ``text``, ``tokens``, ``steps`` ([candidates, accepted] by visited node),
    ``accepted_length``, ``verified``, ``seconds``, ``margin``.
    """
    tell = progress or silent
    ids = check_prompts(pair, plan)
    journal = None
    if out is not None:
        tell("hashing weights", 0, 0)
        journal = Journal(out, {**pair.settings(), "libraries": library_versions(), **plan.to_json()})
    known = journal.results if journal else {}
    drafter: Drafter | None = None
    for number, prompt in enumerate(plan.prompts):
        if prompt.name not in known and drafter is None:
            tell("loading models", number, len(plan.prompts))
            pair.load()
            drafter = plan.method.drafter(pair.draft, pair.vocabulary, plan.sampling)
        tell("generating", number, len(plan.prompts))
        if prompt.name in known:
            yield known[prompt.name]
            continue
        assert drafter is not None
        found = generate(
            pair.target,
            drafter,
            ids[number],
            max_new_tokens=plan.max_new_tokens,
            rule=plan.method.verifier(),
            sampling=plan.sampling,
            seed=plan.seed + number,
            stop_tokens=pair.stop_tokens,
        )
        result = describe(prompt, found, pair.tokenizer)
        if journal:
            journal.add(prompt.name, result)
            result = journal.results[prompt.name]
        yield result
    tell("generating", len(plan.prompts), len(plan.prompts))


def check_prompts(pair: Pair, plan: Plan) -> list[list[int]]:
    """Token ids of the prompts; raises InputError for equal names, and for a prompt that is empty or too long."""
    names = [prompt.name for prompt in plan.prompts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two prompts are named {twice!r}; results are kept by name: rename one")
    plan.sampling.check()
    depth = plan.method.drafter(None, pair.vocabulary, plan.sampling).depth
    ids = [pair.encode(prompt) for prompt in plan.prompts]
    for prompt, tokens in zip(plan.prompts, ids, strict=True):
        check_fits(len(tokens), plan.max_new_tokens, depth, pair.context_limit, f"prompt {prompt.name!r}")
    return ids


def describe(prompt: Prompt, found: Generation, tokenizer: Any) -> dict[str, Any]:
    """A JSON-ready result."""
    return {
        "prompt": prompt.name,
        "text": tokenizer.decode(list(found.tokens)),
        "tokens": list(found.tokens),
        "steps": [accepted_indices(step.visits) for step in found.steps],
        "accepted_length": found.accepted_length,
        "verified": found.verified,
        "seconds": found.seconds,
        "margin": found.margin,
    }


def accepted_indices(visits: Sequence[Any]) -> list[list[int]]:
    """[candidates, accepted index or −1] of every visited node."""
    return [[len(visit.candidates), visit.accepted] for visit in visits]
