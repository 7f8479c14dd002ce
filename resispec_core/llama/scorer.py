"""A Llama with its key-value cache that scores the nodes of a draft tree: tree attention.

torch is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.errors import InputError
from resispec_core.llama import models
from resispec_core.trees import DraftTree, Topology


class TreeScorer:
    """One model, one context, and any number of nodes of one draft tree that continues it.

    The cache holds the context, then the scored nodes in the order in which they were asked for. A node sees the
    context and its own ancestors (a 4-D mask), and stands at the position its depth gives it. ``keep`` ends a step: it
    gathers the cache to the accepted path, so that nothing of a rejected branch is left.

    Context tokens that were never scored (the last emitted token, and accepted leaves that the draft did not score)
    wait in ``pending`` and go through the model with the root.

    Cost: one forward pass a call; logits at the asked nodes only. Cannot detect: a model whose attention ignores the
    mask (flash attention does); ``models.load_model`` loads none.
    """

    def __init__(self, model: Any, prompt: Sequence[int]) -> None:
        if not prompt:
            raise InputError("the prompt has no token; a first token needs one before it")
        self.model = model
        self._cache = models.new_cache()
        self._length = 0  # context tokens in the cache
        self._held: list[int] = []  # tree nodes behind them
        self.pending = list(prompt)

    @property
    def context_length(self) -> int:
        """Tokens of the context, the pending ones included."""
        return self._length + len(self.pending)

    def holds(self, node: int) -> bool:
        """Whether ``node`` was scored in this step."""
        return node in self._held

    def logits(self, tree: DraftTree, nodes: Sequence[int]) -> Array:
        """Logits after each of ``nodes``: (nodes, V) float32. The root and every ancestor come first or came before."""
        torch, _ = models.libraries()
        nodes = list(nodes)
        lead: list[int] = []
        if 0 in nodes:
            if nodes[0] != 0 or self._held:
                raise InputError(f"nodes are {nodes}: the root is scored first, and once a step")
            lead, self.pending = self.pending[:-1], self.pending[-1:]
        root_position = self._length + len(lead)
        tokens = [*lead, *(self.pending[0] if node == 0 else tree.tokens[node] for node in nodes)]
        positions = [
            *range(self._length, root_position),
            *(root_position + tree.topology.depths[node] - 1 for node in nodes),
        ]
        held = [*self._held, *nodes]
        device = self.model.device
        with torch.inference_mode():
            mask = torch.from_numpy(tree_mask(tree.topology, self._length, len(lead), held, len(nodes)))
            smallest = torch.finfo(self.model.dtype).min
            additive = torch.zeros(mask.shape, dtype=self.model.dtype).masked_fill_(~mask, smallest)
            hidden = models.hidden_states(
                self.model,
                torch.tensor([tokens], device=device),
                self._cache,
                mask=additive[None, None].to(device),
                positions=torch.tensor([positions], device=device),
            )
            rows = self.model.lm_head(hidden[0, len(lead) :]).float().cpu().numpy()
        self._length += len(lead)
        self._held = held
        return rows

    def keep(self, path: Sequence[int], tokens: Sequence[int]) -> None:
        """End the step: ``path`` are the accepted nodes, root first; ``tokens`` the emitted tokens, one a node.

        The cache keeps the scored nodes of the path, in order; the tokens after the last of them become pending.
        """
        torch, _ = models.libraries()
        slots = {node: self._length + place for place, node in enumerate(self._held)}
        scored = [node for node in path if node in slots]
        if scored != list(path[: len(scored)]):
            raise InputError(f"path {list(path)}: only {scored} were scored, which is no beginning of it")
        context = [*self.pending, *tokens]  # the root's token is pending[-1]
        self.pending = context[len(scored) + len(self.pending) - 1 :] if scored else context
        with torch.inference_mode():
            wanted = torch.tensor([slots[node] for node in scored], dtype=torch.long)
            for layer in self._cache.layers:
                if layer.is_initialized:
                    layer.keys, layer.values = (
                        _gathered(part, self._length, wanted) for part in (layer.keys, layer.values)
                    )
        self._length += len(scored)
        self._held = []


def _gathered(part: Any, length: int, wanted: Any) -> Any:
    """Keys or values (batch, heads, slots, size): the first ``length`` slots, then the ``wanted`` ones."""
    import torch

    return torch.cat([part[..., :length, :], part[..., wanted.to(part.device), :]], dim=-2)


def tree_mask(topology: Topology, length: int, lead: int, held: Sequence[int], new: int) -> Array:
    """Who sees whom: booleans (lead + new, length + lead + held), True where attention is allowed.

    Columns: ``length`` cached context tokens, ``lead`` context tokens of this pass, then the nodes ``held``, of which
    the last ``new`` are of this pass. Context tokens see what comes before them; a node sees all context and its path.
    """
    place = {node: column for column, node in enumerate(held)}
    mask = np.zeros((lead + new, length + lead + len(held)), dtype=bool)
    mask[:, :length] = True
    mask[:lead, length : length + lead] = np.tri(lead, dtype=bool)
    mask[lead:, length : length + lead] = True
    for row, node in enumerate(held[len(held) - new :], start=lead):
        for seen in topology.path(node):
            if seen not in place:
                raise InputError(f"node {node} is scored before its ancestor {seen}; score parents first")
            mask[row, length + lead + place[seen]] = True
    return mask
