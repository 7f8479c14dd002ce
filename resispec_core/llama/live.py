"""End-to-end runs for `resispec speed --live`: one configuration a process, each prompt's result kept as it comes.

``python -m resispec_core.llama.live`` runs one configuration, given as JSON on standard input. The parent process
never loads a model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.llama.breakdown import Stopwatches
from resispec_core.llama.decode import Generation, Step, generate
from resispec_core.llama.diagnostics import node_diagnostics
from resispec_core.llama.drafters import Sampling
from resispec_core.llama.journal import Journal
from resispec_core.llama.pair import Pair
from resispec_core.llama.prompts import Prompt
from resispec_core.llama.record import library_versions
from resispec_core.llama.session import Plan, check_prompts, describe
from resispec_core.llama.systems import system

WARM_UP = 2
"""Prompts decoded before the first timed one; their results are dropped."""
AUDIT_EVERY = 3
"""Every third prompt's first root row is audited, after its timed part."""


@dataclass(frozen=True)
class Configuration:
    """One cell of a speed run."""

    pair: tuple[str, str | None, str | None, str, str]
    """Arguments of ``Pair``: target, draft, skipped layers, dtype, device."""
    system: str
    tree: str
    temperature: float
    threads: int
    max_new_tokens: int
    seed: int
    breakdown: bool = False

    @property
    def key(self) -> str:
        """The name of its journal."""
        tree = (
            Path(self.tree).stem.replace(":", "-")
            if self.tree.endswith(".json")
            else self.tree.replace(":", "-")
        )
        kind = "breakdown-" if self.breakdown else ""
        return f"{kind}{self.system}-{tree}-T{self.temperature:g}"

    def plan(self, prompts: Sequence[Prompt]) -> Plan:
        """What is decoded."""
        method = system(self.system, self.tree)
        return Plan(method, Sampling(self.temperature), self.max_new_tokens, self.seed, tuple(prompts))


def run_in_own_process(
    configuration: Configuration, prompts: Sequence[Prompt], journal: Path
) -> Iterator[tuple[int, int]]:
    """Run what is still missing in ``journal``, in a process of its own; yields (prompts done, prompts).

    Raises InputError with the child's message where it refuses.
    """
    spec = json.dumps(
        {
            "configuration": asdict(configuration),
            "prompts": [asdict(prompt) for prompt in prompts],
            "journal": str(journal),
        }
    )
    command = [sys.executable, "-m", "resispec_core.llama.live"]
    environment = os.environ | {"OMP_NUM_THREADS": str(configuration.threads)}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            child.stdin.write(spec)
            child.stdin.close()
            for line in child.stdout:
                yield tuple(json.loads(line))
            complaint = child.stderr.read()
        except BaseException:
            child.terminate()
            raise
    if child.returncode != 0:
        last = complaint.strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        raise InputError(f"{configuration.key}: {last[0]}")


def run_here(
    configuration: Configuration, prompts: Sequence[Prompt], journal: Path
) -> Iterator[tuple[int, int]]:
    """Run the configuration in this process; yields (prompts done, prompts) after every prompt.

    A prompt's result holds wall seconds of its decoding alone; the ceiling at every visited node, and every third
    prompt's audit, are looked up between the steps, untimed. In a breakdown run the device is synchronised around
    every component, so its total is no throughput.
    """
    pair, plan = Pair(*configuration.pair), configuration.plan(prompts)
    ids = check_prompts(pair, plan)
    settings = {
        **pair.settings(),
        "libraries": library_versions(),
        **plan.to_json(),
        "system": configuration.system,
        "tree": configuration.tree,
        "threads": configuration.threads,
        "breakdown": configuration.breakdown,
    }
    kept = Journal(journal, settings)
    missing = [i for i, prompt in enumerate(plan.prompts) if prompt.name not in kept.results]
    if not missing:
        yield len(ids), len(ids)
        return
    torch = _torch(configuration.threads)
    pair.load()
    drafter = plan.method.drafter(pair.draft, pair.vocabulary, plan.sampling)
    watches = Stopwatches(pair.target.device) if configuration.breakdown else None
    rule = watches.watched(plan.method.verifier()) if watches else plan.method.verifier()

    def run(i: int, seed: int, new: int, watch: Callable[[Step], None] | None) -> Generation:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return generate(
            pair.target,
            drafter,
            ids[i],
            max_new_tokens=new,
            rule=rule,
            sampling=plan.sampling,
            seed=seed,
            stop_tokens=pair.stop_tokens,
            watch=watch,
            **({"stopwatch": watches} if watches else {}),
        )

    for i in range(min(WARM_UP, len(ids))):
        run(i, 10**9 + i, min(4, plan.max_new_tokens), None)
    for i in missing:
        nodes: list[dict[str, Any]] = []

        def look(
            step: Step, nodes: list[dict[str, Any]] = nodes, audited: bool = i % AUDIT_EVERY == 0
        ) -> None:
            law = audited and not nodes
            nodes += node_diagnostics(step.tree, step.walk, step.laws, rule, plan.method.siblings, law=law)

        if watches:
            watches.reset()
        found = run(i, plan.seed + i, plan.max_new_tokens, None if watches else look)
        result = describe(plan.prompts[i], found, pair.tokenizer) | {
            "widths": [len(step.visits) for step in found.steps]
        }
        result |= {"components": watches.seconds()} if watches else {"nodes": nodes}
        kept.add(plan.prompts[i].name, result)
        yield len(kept.results), len(ids)


def _torch(threads: int) -> Any:
    """torch, seeded and single-minded: the paper's random control."""
    import random

    import numpy as np

    from resispec_core.llama.models import libraries

    torch, _ = libraries()
    torch.set_num_threads(threads)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    return torch


def main() -> int:
    """Run the configuration on standard input; progress as JSON lines on standard output."""
    spec = json.loads(sys.stdin.read())
    fields = spec["configuration"] | {"pair": tuple(spec["configuration"]["pair"])}
    prompts = [Prompt(**prompt) for prompt in spec["prompts"]]
    try:
        for done in run_here(Configuration(**fields), prompts, Path(spec["journal"])):
            print(json.dumps(done), flush=True)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
