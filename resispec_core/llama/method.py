"""A decoding method by name: which tree is drafted, how siblings are drawn, and which rule verifies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from resispec_core.drafts import draw_mode
from resispec_core.errors import InputError
from resispec_core.llama.drafters import Drafter, EagleDrafter, LookupDrafter, ModelDrafter, Sampling
from resispec_core.rules import Rule, rule
from resispec_core.trees import Topology, chain
from resispec_core.trees.files import read_topology


@dataclass(frozen=True)
class Method:
    """How to decode, apart from the models and the sampling.

    ``tree``: ``5x3`` or ``d5b3`` (complete, depth counts the root), a topology file (``*.json``), ``chain:4``,
    ``eagle`` or ``eagle:60:5:10`` (total_token, depth, top_k), ``lookup`` or ``lookup:4:3`` (drafted tokens, n-gram;
    needs no draft model), or ``none`` (the target alone).
    ``draw``: None for the rule's first mode that the tree allows.
    """

    tree: str
    rule: str
    draw: str | None = None

    def __post_init__(self) -> None:
        found = self.verifier()
        if self.deterministic:
            if self.draw not in (None, "top-k"):
                raise InputError(
                    f"tree {self.tree!r} has deterministic candidates (top-k), not {self.draw!r}"
                )
            found.draw_mode("top-k")
        elif self.draw is not None:
            found.draw_mode(draw_mode(self.draw))
        self.topology()

    @property
    def kind(self) -> str:
        """``eagle``, ``lookup``, ``none`` or ``fixed``."""
        head = self.tree.split(":")[0]
        return head if head in ("eagle", "lookup", "none") else "fixed"

    @property
    def deterministic(self) -> bool:
        """Whether the tree itself fixes the candidates."""
        return self.kind in ("eagle", "lookup")

    @property
    def siblings(self) -> str:
        """The name of the draw mode in force."""
        return "top-k" if self.deterministic else (self.draw or self.verifier().draws[0])

    def verifier(self) -> Rule:
        """The rule."""
        return rule(self.rule)

    def topology(self) -> Topology | None:
        """The topology where it is fixed; raises InputError for text that names no tree."""
        if self.deterministic:
            self._numbers()
            return None
        if self.kind == "none":
            return Topology((-1,))
        if self.tree.startswith("chain:"):
            return chain(_number(self.tree, self.tree.split(":")[1]))
        return read_topology(self.tree)

    def drafter(self, draft: Any, vocabulary: int, sampling: Sampling) -> Drafter:
        """The drafter over a draft model (None where the method needs none)."""
        if self.kind == "lookup":
            drafted, ngram = self._numbers()
            return LookupDrafter(vocabulary, drafted=drafted, ngram=ngram)
        if self.kind == "eagle":
            total, depth, top_k = self._numbers()
            return EagleDrafter(draft, total_token=total, depth=depth, top_k=top_k, sampling=sampling)
        topology = self.topology()
        assert topology is not None
        return ModelDrafter(draft, topology, draw=self.siblings, sampling=sampling)

    @property
    def needs_draft(self) -> bool:
        """Whether a draft model is used at all."""
        return self.kind in ("eagle", "fixed")

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return asdict(self) | {"draw": self.siblings}

    def _numbers(self) -> Sequence[int]:
        defaults = (60, 5, 10) if self.kind == "eagle" else (4, 3)
        given = self.tree.split(":")[1:]
        if len(given) > len(defaults):
            raise InputError(
                f"tree {self.tree!r} has {len(given)} numbers; {self.kind} takes {len(defaults)}"
            )
        return [*(_number(self.tree, text) for text in given), *defaults[len(given) :]]


def _number(tree: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise InputError(
            f"tree {tree!r}: {text!r} is not a number; write chain:4, eagle:60:5:10 or lookup:4:3"
        )
    return int(text)
