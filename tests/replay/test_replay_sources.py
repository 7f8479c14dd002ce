"""What the replay refuses, by name; what it leaves untouched; what it mimics."""

import math
import os
import random
import secrets
import sys
import uuid

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from resispec_core.audit.replay import (
    LeakError,
    RefusalError,
    numpy_source,
    replay_step,
    replay_verify,
    trail,
)
from resispec_core.audit.replay.patches import controlled
from resispec_core.audit.replay.tables import hard_pair
from resispec_core.errors import InputError

P, Q = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]
HIDDEN = np.random.default_rng(5)
BOUND = random.random


def closure():
    inner = np.random.default_rng(6)
    return lambda target, draft, candidates, rng: int(inner.choice(4, p=target))


REFUSED = {
    "os.urandom": lambda target, draft, candidates, rng: os.urandom(1)[0] % 4,
    "secrets.randbelow": lambda target, draft, candidates, rng: secrets.randbelow(4),
    "uuid.uuid4": lambda target, draft, candidates, rng: uuid.uuid4().int % 4,
    "random.SystemRandom": lambda target, draft, candidates, rng: int(random.SystemRandom().random() * 4),
    "Generator.normal": lambda target, draft, candidates, rng: int(rng.normal() > 0),
    "Generator.dirichlet": lambda target, draft, candidates, rng: int(np.argmax(rng.dirichlet([1, 1, 1]))),
    "Generator.bit_generator": lambda target, draft, candidates, rng: int(rng.bit_generator.random_raw() % 4),
    "PCG64": lambda target, draft, candidates, rng: np.random.Generator(np.random.PCG64(1)).integers(4),
    "randn": lambda target, draft, candidates, rng: int(np.random.randn() > 0),
    "get_state": lambda target, draft, candidates, rng: int(np.random.get_state()[1][0] % 4),
}
TORCH_REFUSED = {
    "torch.randn": lambda target, draft, candidates, rng: torch.randn(4).argmax(),
    "torch.normal": lambda target, draft, candidates, rng: torch.normal(torch.zeros(4)).argmax(),
    "torch.poisson": lambda target, draft, candidates, rng: int(torch.poisson(torch.ones(1))) % 4,
    "torch.cauchy": lambda target, draft, candidates, rng: torch.empty(4).cauchy_().argmax(),
    "native_dropout|dropout|meets a coin": lambda target, draft, candidates, rng: (
        torch.rand(4) @ torch.ones(4, 4)
    ).argmax(),
    "_softmax": lambda target, draft, candidates, rng: F.gumbel_softmax(target.log(), hard=True).argmax(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_uncontrolled_sources_are_refused_by_name(name):
    with pytest.raises(RefusalError, match=name.replace(".", r"\.")):
        replay_verify(REFUSED[name], P, Q)


@pytest.mark.parametrize("name", TORCH_REFUSED)
def test_uncontrolled_torch_sources_are_refused_by_name(name):
    with pytest.raises(RefusalError, match=name):
        replay_verify(TORCH_REFUSED[name], P, Q, library="torch")


LEAKS = {
    "float()": lambda target, draft, candidates, rng: int(float(rng.random()) > 0.5),
    "numpy float array": lambda target, draft, candidates, rng: int(
        np.array([rng.random()], dtype=float)[0] > 0.5
    ),
    "index": lambda target, draft, candidates, rng: [0, 1][rng.random()],
    "cosine": lambda target, draft, candidates, rng: int(math.cos(rng.random()) > 0.5),
    "tensor": lambda target, draft, candidates, rng: int(torch.tensor(rng.random()) > 0.5),
    "float of a tensor": lambda target, draft, candidates, rng: int(float(torch.rand(1)) > 0.5),
    "closure": closure(),
}


@pytest.mark.parametrize("name", LEAKS)
def test_leaks_raise(name):
    with pytest.raises(RefusalError):
        replay_verify(LEAKS[name], P, Q)


def test_a_swallowed_refusal_still_raises():
    def verify(target, draft, candidates, rng):
        try:
            return int(rng.normal() > 0)
        except Exception:
            return 0

    with pytest.raises(RefusalError, match="normal"):
        replay_verify(verify, P, Q)


def test_state_kept_between_calls_is_refused():
    calls = []

    def verify(target, draft, candidates, rng):
        calls.append(1)
        return int(rng.random() < 0.3 + 0.1 * (len(calls) % 3))

    with pytest.raises(LeakError):
        replay_verify(verify, P, Q)


def test_a_sampler_that_tells_coins_from_numbers_is_refused():
    def verify(target, draft, candidates, rng):
        coin = rng.random()
        return int(coin > 0.5) if isinstance(coin, float) else int(rng.choice(4, p=target))

    with pytest.raises(LeakError):
        replay_verify(verify, P, Q)


def test_a_fixed_seed_is_not_taken_for_randomness():
    def verify(target, draft, candidates, rng):
        return int(np.random.default_rng(3).choice(4, p=target))

    with pytest.raises(LeakError, match="unpatched"):
        replay_verify(verify, P, Q)


def test_generators_bound_at_import_are_controlled():
    report = replay_verify(lambda target, draft, candidates, rng: int(HIDDEN.choice(4, p=target)), P, Q)
    assert report.exit_code == 0
    assert type(HIDDEN) is np.random.Generator
    report = replay_verify(
        lambda target, draft, candidates, rng: int(np.searchsorted(np.cumsum(target), BOUND(), side="right")),
        P,
        Q,
    )
    assert report.exit_code == 0
    assert BOUND is random.random


LATE = """
from random import random as coin
from numpy.random import rand
"""


def late_sampler(name):
    def verify(target, draft, candidates, rng):
        return int(__import__(name).coin() < 0.5)

    return verify


@pytest.fixture
def late_module(tmp_path, monkeypatch):
    """Writes a module that a sampler imports only when it is called."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        made.append(name)

    yield write
    for name in made:
        sys.modules.pop(name, None)


def test_a_module_imported_during_the_audit_keeps_no_stand_in(late_module):
    late_module("late_names", LATE)
    report = replay_verify(late_sampler("late_names"), [0.5, 0.5], [0.5, 0.5])
    assert report.exit_code == 0
    assert sys.modules["late_names"].coin is random.random
    assert sys.modules["late_names"].rand is np.random.rand


def test_a_generator_made_by_a_late_import_is_refused_by_name(late_module):
    late_module("late_generator", LATE + "import numpy as np\nhidden = np.random.default_rng(3)\n")
    with pytest.raises(RefusalError, match=r"imported late_generator \(hidden\) during the audit"):
        replay_verify(late_sampler("late_generator"), [0.5, 0.5], [0.5, 0.5])
    assert type(sys.modules["late_generator"].hidden) is np.random.Generator
    assert 0 <= sys.modules["late_generator"].hidden.random() < 1


def states():
    return (
        random.getstate(),
        [part if isinstance(part, (str, int, float)) else part.tolist() for part in np.random.get_state()],
        torch.get_rng_state().tolist(),
        HIDDEN.bit_generator.state["state"],
    )


@pytest.mark.parametrize("fails", [False, True])
def test_global_state_is_untouched(fails):
    def verify(target, draft, candidates, rng):
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        total = (random.random() < 0.5) + (np.random.rand() < 0.5) + (torch.rand(1).item() < 0.5)
        total += int(HIDDEN.random() < 0.5)
        if fails:
            rng.normal()
        return int(total) % 4

    names = (random.random, np.random.rand, np.random.default_rng, os.urandom, math.log, torch.manual_seed)
    before = states()
    if fails:
        with pytest.raises(RefusalError):
            replay_verify(verify, P, Q)
    else:
        replay_verify(verify, P, Q, monte_carlo=0)  # seeding inside is a fault that sampling would show
    assert states() == before
    assert names == (
        random.random,
        np.random.rand,
        np.random.default_rng,
        os.urandom,
        math.log,
        torch.manual_seed,
    )
    assert "random" not in vars(random.Random)


def test_state_is_restored_when_a_leak_advanced_a_generator():
    inner = np.random.default_rng(9)
    before = inner.bit_generator.state
    with pytest.raises(RefusalError):
        replay_verify(lambda target, draft, candidates, rng: int(inner.random() < 0.5), P, Q)
    assert inner.bit_generator.state == before


def test_every_public_generator_method_is_answered_or_refused():
    for fork, original in (
        (numpy_source.ForkGenerator, np.random.Generator),
        (numpy_source.ForkRandomState, np.random.RandomState),
    ):
        public = {name for name in dir(original) if not name.startswith("_")}
        assert public <= set(vars(fork)), public - set(vars(fork))


@pytest.mark.parametrize(
    ("weights", "count"),
    [
        ([0.5, float("nan")], 1),
        ([0.5, -0.5], 1),
        ([0.0, 0.0], 1),
        ([0.5, 0.5], 3),
        ([math.inf, 1.0], 1),
        ([0.5, 0.5], 0),
    ],
)
def test_multinomial_fails_as_torch_does(weights, count):
    row = torch.tensor(weights)
    with pytest.raises(RuntimeError) as real:
        torch.multinomial(row, count)
    target, draft = hard_pair(3)
    report = replay_step(
        lambda target, draft, prefix, rng: torch.multinomial(row, count),
        target,
        draft,
        horizon=1,
        monte_carlo=50,
    )
    assert report.crash_mass == 1
    message = next(iter(report.crashes)).removeprefix("RuntimeError: ")
    assert str(real.value).startswith(message[:40])


@pytest.mark.parametrize("p", [[0.5, float("nan"), 0, 0], [0.5, -0.5, 1, 0], [0.5, 0.1, 0, 0], [0.5, 0.5]])
def test_choice_fails_as_numpy_does(p):
    with pytest.raises(ValueError) as real:  # noqa: PT011
        np.random.default_rng(0).choice(4, p=p)
    report = replay_verify(lambda target, draft, candidates, rng: rng.choice(4, p=p), P, Q, numbers="float64")
    assert report.crash_mass == 1
    assert str(real.value)[:20].lower() in next(iter(report.crashes)).lower()


def test_without_replacement_is_sequential():
    report = replay_verify(
        lambda target, draft, candidates, rng: int(rng.choice(3, size=2, replace=False, p=[0.5, 0.3, 0.2])[1]),
        [1, 0, 0], [1, 0, 0], numbers="float64",
    )  # fmt: skip
    right = [
        0.3 * 0.5 / 0.7 + 0.2 * 0.5 / 0.8,
        0.5 * 0.3 / 0.5 + 0.2 * 0.3 / 0.8,
        0.5 * 0.2 / 0.5 + 0.3 * 0.2 / 0.7,
    ]
    np.testing.assert_allclose([float(report.law[(token,)]) for token in range(3)], right)


def test_refusal_is_an_input_error():
    assert issubclass(RefusalError, InputError)


def test_planted_fault_in_the_harness_itself_is_caught(monkeypatch):
    """A trail that loses a branch: the weights no longer add up to 1."""
    monkeypatch.setattr(trail.Decision, "advance", lambda self: False)
    with pytest.raises(LeakError, match="not 1"):
        replay_verify(lambda target, draft, candidates, rng: int(rng.random() < 0.5), P, Q)


def test_planted_wrong_weight_is_caught_by_the_closing_monte_carlo(monkeypatch):
    real = trail.Trail.categorical

    def wrong(self, weights, label):
        return real(self, [1] * len(weights), label)

    monkeypatch.setattr(trail.Trail, "categorical", wrong)
    with pytest.raises(LeakError, match="unpatched"):
        replay_verify(lambda target, draft, candidates, rng: int(rng.choice(4, p=target)), P, Q)


def test_blocks_nest():
    with controlled():
        assert (
            replay_verify(
                lambda target, draft, candidates, rng: int(rng.choice(4, p=target)), P, Q, monte_carlo=0
            ).exit_code
            == 0
        )
