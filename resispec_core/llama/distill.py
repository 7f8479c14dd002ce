"""Distil a small Llama draft from a target: a few of its own layers, trained on text the target writes.

The student keeps the target's embeddings, head and tokenizer (frozen) and some of its decoder layers. It learns the
target's next-token law on samples of the target at temperature 1, by the forward KL divergence; the gradient at the
student's last hidden state is written out, ``(q − p) W / N``, so that no graph over the vocabulary is kept.

torch and transformers are imported inside the functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama import models
from resispec_core.llama.prompts import BUILT_IN, Prompt
from resispec_core.llama.record import Progress, silent
from resispec_core.llama.writer import first_difference, replace_file

SETTINGS_FILE, CORPUS, TRAINING = "distill.json", "corpus", "training.safetensors"
START_TOKENS = 4
"""Every text of the corpus starts with that many tokens from a random place of the given texts."""
HEAD_ROWS = 128
"""Rows of the vocabulary-sized arrays held at once."""


@dataclass(frozen=True)
class Recipe:
    """What decides the student, besides the target and the texts."""

    layers: str = "0-2,29"
    """Layers of the target that the student starts from, counted from 0."""
    tokens: int = 65_536
    """Size of the corpus; the last part of it is held out."""
    epochs: int = 4
    length: int = 128
    """Tokens of one text."""
    part: int = 32
    """Texts sampled together, and kept in one file."""
    batch: int = 4
    """Texts of one training step."""
    learning_rate: float = 1e-3
    seed: int = 0

    def check(self) -> None:
        """Refuse a recipe that makes no training step."""
        for name in ("tokens", "epochs", "length", "part", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; pass at least 1")
        if not self.learning_rate > 0:
            raise InputError(f"learning rate is {self.learning_rate}; pass a positive number")
        if self.length <= START_TOKENS:
            raise InputError(f"length is {self.length}; a text needs more than {START_TOKENS} tokens")
        if self.parts < 2:
            raise InputError(
                f"{self.tokens} tokens are one part of the corpus, and the last part is held out; "
                f"pass at least {2 * self.part * self.length}"
            )

    @property
    def parts(self) -> int:
        """Files of the corpus."""
        return -(-self.tokens // (self.part * self.length))


def distill(
    out: str | Path,
    *,
    target: str | Path = models.BUILT_IN,
    texts: Sequence[Prompt] = BUILT_IN,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Make a draft model in the folder ``out``; returns what ``distill.json`` says, the held-out overlap included.

    ``overlap`` is the mean of Σ min(p, q) over held-out positions at temperature 1: the acceptance of one candidate.
    It is given before and after training. An interrupt loses at most one part of the corpus or one epoch; the same
    call continues. Raises InputError for another recipe in the same folder.

    Cost on one core for the built-in target and the defaults: about a quarter of an hour.
    """
    recipe = recipe or Recipe()
    recipe.check()
    tell, folder = progress or silent, Path(out)
    tell("reading tokenizer and configuration", 0, 0)
    source = models.find_model(target)
    config = models.load_config(source)
    kept = models.parse_layers(recipe.layers)
    if kept[-1] >= config.num_hidden_layers:
        raise InputError(
            f"cannot keep layer {kept[-1]}: the target has layers 0 to {config.num_hidden_layers - 1}"
        )
    if recipe.length > config.max_position_embeddings:
        raise InputError(
            f"length is {recipe.length}; the target takes {config.max_position_embeddings} tokens"
        )
    tokenizer = models.load_tokenizer(source)
    starts = _starts(texts, tokenizer)
    settings = {
        "kind": "resispec-distilled",
        "target": {"id": source.id, "files": source.hashes()},
        "recipe": asdict(recipe),
        "texts": [prompt.text for prompt in texts],
    }
    done = _open(folder, settings)
    if "overlap" in done:
        return done
    tell("loading the target", 0, 0)
    teacher = models.load_model(source)
    parts = []
    for number in range(recipe.parts):
        tell("sampling text from the target", number, recipe.parts)
        parts.append(_corpus_part(folder / CORPUS, number, teacher, starts, recipe))
    student = shortened(teacher, kept)
    losses, before = _train(student, teacher.lm_head.weight, parts, recipe, folder, tell)
    result = {
        **settings,
        "layers": len(kept),
        "losses": losses,
        "overlap": {
            "before": before,
            "after": overlap(student, teacher.lm_head.weight, parts[-1], recipe.batch),
        },
    }
    tell("writing", 0, 0)
    student.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    replace_file(folder / SETTINGS_FILE, (json.dumps(result, indent=1) + "\n").encode())
    (folder / TRAINING).unlink(missing_ok=True)
    return result


def shortened(model: Any, kept: Sequence[int]) -> Any:
    """A new LlamaForCausalLM that starts from the target's embeddings, head, norm and the ``kept`` layers (copied)."""
    import copy

    _, transformers = models.libraries()
    options = model.config.to_dict()
    options.pop("quantization_config", None)  # that of the file the target came from
    student = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**(options | {"num_hidden_layers": len(kept)}))
    )
    student.load_state_dict(
        {name: weight for name, weight in model.state_dict().items() if not name.startswith("model.layers.")},
        strict=False,
    )
    for mine, layer in zip(student.model.layers, kept, strict=True):
        mine.load_state_dict(copy.deepcopy(model.model.layers[layer].state_dict()))
    return student.float()


def overlap(student: Any, head: Any, part: dict[str, Any], batch: int) -> float:
    """Mean Σ min(p, q) over the positions of a part, p from the stored hidden states of the target."""
    torch, _ = models.libraries()
    total, count = 0.0, 0
    with torch.inference_mode():
        for at in range(0, len(part["tokens"]), batch):
            tokens, hidden = (part[name][at : at + batch] for name in ("tokens", "hidden"))
            mine = models.hidden_states(student, tokens.long())
            for own, theirs in _rows(mine, hidden):
                p, q = ((rows.float() @ head.T).softmax(-1) for rows in (theirs, own))
                total, count = total + float(torch.minimum(p, q).sum()), count + len(p)
    return total / count


def _open(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """What is there already; the settings are written into an empty folder and compared in another."""
    file = folder / SETTINGS_FILE
    wanted = json.loads(json.dumps(settings))
    if not file.exists():
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty and holds no {SETTINGS_FILE}: choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(file, (json.dumps(wanted, indent=1) + "\n").encode())
        return wanted
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {file}: {error}; choose an empty folder") from error
    different = first_difference({key: found.get(key) for key in wanted}, wanted)
    if different:
        raise InputError(f"{folder} was made with other settings: {different}; choose an empty folder")
    return found


def _starts(texts: Sequence[Prompt], tokenizer: Any) -> list[list[int]]:
    windows = []
    for prompt in texts:
        ids = tokenizer(prompt.text)["input_ids"]
        windows += [ids[at : at + START_TOKENS] for at in range(len(ids) - START_TOKENS + 1)]
    if not windows:
        raise InputError(f"no text has {START_TOKENS} tokens to start from; pass longer texts")
    return windows


def _corpus_part(
    folder: Path, number: int, teacher: Any, starts: list[list[int]], recipe: Recipe
) -> dict[str, Any]:
    """Tokens (texts, length) and the target's last hidden state at each, fp16; read if it was sampled before."""
    torch, _ = models.libraries()
    from safetensors.torch import load_file, save

    file = folder / f"part-{number:05d}.safetensors"
    if file.exists():
        return load_file(file)
    folder.mkdir(exist_ok=True)
    coins = torch.Generator().manual_seed(recipe.seed * 1_000_003 + number)
    chosen = torch.randint(len(starts), (recipe.part,), generator=coins)
    tokens = torch.tensor([starts[int(i)] for i in chosen])
    with torch.inference_mode():
        cache = models.new_cache()
        hidden = [models.hidden_states(teacher, tokens, cache)]
        while tokens.shape[1] < recipe.length:
            law = teacher.lm_head(hidden[-1][:, -1]).float().softmax(-1)
            new = torch.multinomial(law, 1, generator=coins)
            tokens = torch.cat([tokens, new], dim=1)
            hidden.append(models.hidden_states(teacher, new, cache))
    part = {"tokens": tokens.int(), "hidden": torch.cat(hidden, dim=1).half()}
    replace_file(file, save(part))
    return load_file(file)


def _train(
    student: Any, head: Any, parts: list[dict[str, Any]], recipe: Recipe, folder: Path, tell: Progress
) -> tuple[list[float], float]:
    """Losses by epoch (nats a token) and the overlap before training. Continues after the last whole epoch."""
    torch, _ = models.libraries()
    head = head.detach()
    for parameter in student.parameters():
        parameter.requires_grad_(False)
    trained = [
        p.requires_grad_() for p in (*student.model.layers.parameters(), *student.model.norm.parameters())
    ]
    optimiser = torch.optim.AdamW(trained, lr=recipe.learning_rate, weight_decay=0.0)
    data = {name: torch.cat([part[name] for part in parts[:-1]]) for name in ("tokens", "hidden")}
    steps = -(-len(data["tokens"]) // recipe.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.learning_rate, total_steps=steps * recipe.epochs + 1
    )
    before = overlap(student, head, parts[-1], recipe.batch)
    losses = _restore(folder / TRAINING, trained, optimiser, schedule)
    student.train()
    for epoch in range(len(losses), recipe.epochs):
        order = torch.randperm(
            len(data["tokens"]), generator=torch.Generator().manual_seed(recipe.seed + epoch)
        ).split(recipe.batch)
        total = 0.0
        for number, rows in enumerate(order):
            tell(f"training, epoch {epoch + 1} of {recipe.epochs}", number, steps)
            optimiser.zero_grad()
            mine = models.hidden_states(student, data["tokens"][rows].long())
            loss, gradient = kl_and_gradient(mine.detach(), data["hidden"][rows], head)
            mine.backward(gradient)
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimiser.step()
            schedule.step()
            total += loss
        losses.append(total / steps)
        _keep(folder / TRAINING, trained, optimiser, losses)
    student.eval()
    return losses, before


def kl_and_gradient(mine: Any, theirs: Any, head: Any) -> tuple[float, Any]:
    """Mean KL(p ‖ q) in nats and its gradient at ``mine``, (texts, length, hidden): (q − p) W / N."""
    torch, _ = models.libraries()
    loss, parts = 0.0, []
    with torch.no_grad():
        for own, target in _rows(mine, theirs):
            log_p = (target.float() @ head.T).log_softmax(-1)
            log_q = (own.float() @ head.T).log_softmax(-1)
            p = log_p.exp()
            loss += float((p * (log_p - log_q)).sum())
            parts.append((log_q.exp() - p) @ head)
        count = mine.shape[0] * mine.shape[1]
        return loss / count, (torch.cat(parts) / count).view(mine.shape)


def _rows(mine: Any, theirs: Any) -> Any:
    width = mine.shape[-1]
    return zip(
        mine.reshape(-1, width).split(HEAD_ROWS), theirs.reshape(-1, width).split(HEAD_ROWS), strict=True
    )


def _keep(file: Path, trained: list[Any], optimiser: Any, losses: list[float]) -> None:
    from safetensors.torch import save

    tensors: dict[str, Any] = {}
    for i, parameter in enumerate(trained):
        state = optimiser.state[parameter]
        tensors |= {
            f"{i}.weight": parameter.detach(),
            f"{i}.m": state["exp_avg"],
            f"{i}.v": state["exp_avg_sq"],
        }
    steps = str(int(optimiser.state[trained[0]]["step"]))
    replace_file(file, save(tensors, metadata={"losses": json.dumps(losses), "steps": steps}))


def _restore(file: Path, trained: list[Any], optimiser: Any, schedule: Any) -> list[float]:
    torch, _ = models.libraries()
    if not file.exists():
        return []
    from safetensors import safe_open

    with safe_open(file, framework="pt") as tensors:
        notes = tensors.metadata()
        steps = int(notes["steps"])
        with torch.no_grad():
            for i, parameter in enumerate(trained):
                parameter.copy_(tensors.get_tensor(f"{i}.weight"))
                optimiser.state[parameter] = {
                    "step": torch.tensor(float(steps)),
                    "exp_avg": tensors.get_tensor(f"{i}.m"),
                    "exp_avg_sq": tensors.get_tensor(f"{i}.v"),
                }
    optimiser._opt_called = True  # the schedule would warn that no step came before it
    for _ in range(steps):
        schedule.step()
    return [float(loss) for loss in json.loads(notes["losses"])]
