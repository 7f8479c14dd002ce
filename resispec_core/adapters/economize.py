"""economize: the ``rejection`` verifier row by row, batched and on a tree, and the lossy ``typical`` one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from types import SimpleNamespace
from typing import Any

from resispec_core.adapters.base import Audited, drafted_rows, sequence_audit
from resispec_core.audit.replay import draw
from resispec_core.audit.replay.engine import Model

DISTRIBUTION = "economize"


class Selector:
    """Plain sampling: the softmax of the logits."""

    greedy = False

    def __call__(self, logits: Any, history: Any) -> int:
        import torch

        return int(torch.multinomial(self.distribution(logits, history), 1))

    def distribution(self, logits: Any, history: Any) -> Any:
        """The law of one row."""
        del history
        return logits.softmax(-1)

    def distributions(self, logits: Any) -> Any:
        """The laws of many rows."""
        return logits.softmax(-1)

    def generator_for(self, device: Any) -> Any:
        """torch's own generator."""
        import torch

        del device
        return torch.default_generator


def _verifier(name: str) -> Any:
    verifiers = import_module("economize.decoding.verifiers").VERIFIERS
    return verifiers.get(name)(SimpleNamespace(verifier_options={}, verifier_name=name))


def chain_step(name: str, drafted: int, batched: bool) -> Callable[..., Any]:
    """A ``step`` with a chain of drafts through ``verify`` or ``verify_batch``."""
    import torch

    verifier, selector = _verifier(name), Selector()

    def step(target_model: Model, draft_model: Model, prefix: Any, rng: Any) -> Any:
        del rng
        tokens, draft_rows, target_rows = drafted_rows(target_model, draft_model, prefix, drafted)
        logits, probs = target_rows.log(), draft_rows.float()
        history = torch.cat([prefix, torch.tensor(tokens)])
        if not batched:
            count, last = verifier.verify(logits, tokens, probs, selector, history, len(prefix))
            return [*tokens[:count], last]
        draft = SimpleNamespace(
            tokens=torch.tensor([tokens]), probs=probs[None], lengths=[drafted], width=drafted, parents=None
        )
        counts, lasts = verifier.verify_batch(logits[None], draft, selector, history[None], [len(prefix)])
        return [*tokens[: counts.item()], lasts[0]]

    return step


def tree_step(name: str, siblings: int) -> Callable[..., Any]:
    """A ``step`` with ``siblings`` independent drafts for one position through ``verify_tree``."""
    import torch

    verifier, selector = _verifier(name), Selector()

    def step(target_model: Model, draft_model: Model, prefix: Any, rng: Any) -> Any:
        del rng
        start = tuple(prefix.tolist())
        row = draft_model(start)
        tokens = [draw(row.tolist()) for _ in range(siblings)]
        rows = [target_model(start), *(target_model((*start, token)) for token in tokens)]
        draft = SimpleNamespace(
            tokens=torch.tensor([tokens]),
            probs=row.float().expand(1, siblings, -1),
            lengths=[siblings],
            width=siblings,
            parents=torch.full((1, siblings), -1),
        )
        paths, lasts = verifier.verify_tree(torch.stack(rows).log()[None], draft, selector)
        return [*(tokens[node] for node in paths[0]), lasts[0]]

    return step


def audit() -> list[Audited]:
    """Every audited function, with the installed version."""
    version = metadata.version(DISTRIBUTION)
    found = []
    for name in ("rejection", "typical"):
        settings: dict[str, tuple[int, Callable[..., Any]]] = {
            "verify, 2 drafted": (2, chain_step(name, 2, False)),
            "verify_batch, 2 drafted": (2, chain_step(name, 2, True)),
        }
        if name == "rejection":
            settings["verify_tree, 2 siblings"] = (1, tree_step(name, 2))
        for setting, (drafted, step) in settings.items():
            report = sequence_audit(step, drafted, f"economize {name}", lossy=name == "typical")
            found.append(Audited(DISTRIBUTION, version, f"decoding.verifiers {name}", setting, report))
    return found
