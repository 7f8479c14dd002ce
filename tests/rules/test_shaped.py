"""The shaped chain in floats: always valid, never hanging, and as good as the issue asks on real rows."""

import numpy as np
from hypothesis import given, settings

from resispec_core import law_from_logits, rules
from resispec_core.audit import acceptance_ceiling
from resispec_core.llama.store import sample_store
from resispec_core.testing.strategies import verification_cases


@settings(max_examples=1000)
@given(verification_cases(8, 5, rational=False))
def test_any_float_plan_is_valid(case):
    plan = rules.Shaped().plan(case.target, case.draft, case.candidates)
    assert plan.left[-1] >= 0
    assert 1 - 1e-12 <= plan.total <= case.candidates
    assert plan.steps <= 200


def test_real_rows_close_three_quarters_of_the_gap():
    store, shaped, base, top = sample_store(), [], [], []
    for row in range(len(store)):
        p, q = (law_from_logits(side) for side in store.row(row))
        plan = rules.Shaped().plan(p, q, 3)
        shaped.append(np.minimum(p, q * plan.total).sum())
        top.append(acceptance_ceiling(p, q, 3))
        owed, reach = p, 1.0
        for _ in range(3):
            owed = np.maximum(owed - reach * q, 0)
            reach = owed.sum()
        base.append(1 - reach)
    assert plan.left[-1] >= 0
    assert (np.mean(shaped) - np.mean(base)) / (np.mean(top) - np.mean(base)) >= 0.75


def test_the_share_the_readme_states():
    from resispec_core.audit.compare import compare

    store = sample_store()
    pairs = [tuple(law_from_logits(side) for side in store.row(row)) for row in range(len(store))]
    shaped, optimal = compare(["shaped", "optimal"], pairs, [3])
    assert f"{shaped.gap_closed:.0%}" == "79%"
    assert abs(optimal.gap_closed - 1) < 1e-8


def test_the_horizon_is_rounded_up_until_nothing_is_overspent():
    """τ_{n+1} = τ_n − S_n ≥ 0, or T = n: else the last stage gives more than is owed. Many roots need the step up."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        size, n = int(rng.integers(2, 60)), int(rng.integers(2, 6))
        p, q = (rng.dirichlet(np.full(size, rng.choice([0.05, 0.3, 1]))) for _ in range(2))
        p, q = p / p.sum(), q / q.sum()
        plan = rules.Shaped().plan(p, q, n)
        assert plan.left[-2] - plan.reach[-1] >= 0 or plan.total == n
