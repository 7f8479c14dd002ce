"""The vectorised enumeration against a recursion so plain that it can be read as the definition."""

import numpy as np
import pytest
from hypothesis import given, settings

from resispec_core import rules
from resispec_core.audit import enumerate_paths
from resispec_core.audit.marginal import Marginal
from resispec_core.drafts import draw_mode
from resispec_core.rules import Stage
from resispec_core.testing.strategies import verification_cases


def law_by_definition(rule, p, q, candidates, mode):
    """Σ over candidate tuples of what the rule does on each: accept, or go on, or resample."""
    law = [0] * p.size
    plan = rule.plan(p, q, candidates)
    for tokens, weight in mode.tuples(q, candidates):
        residual, left = p, weight
        for index, token in enumerate(tokens):
            row = mode.conditional(q, np.array(tokens[:index], dtype=int), candidates)
            stage = Stage(p, row, residual, index, candidates, plan)
            accepted = rule.accept(stage)[token]
            law[token] += left * accepted
            left = left * (1 - accepted)
            if left == 0:
                break
            residual = rule.reject(stage, np.array(token))
        for token in range(p.size):
            law[token] += left * residual[token]
    return law


CASES = [
    (rules.SpecInfer(), ("iid", "without-replacement", "top-k", "greedy")),
    *(
        (rules.ResiSpec(redistribution, budget), ("iid", "without-replacement", "top-k"))
        for redistribution in ("proportional", "waterfill", "uniform")
        for budget in ("local", "eq13")
    ),
]


def agree(rule, draw, case):
    mode = draw_mode(draw)
    found = enumerate_paths(rule, case.target, case.draft, case.candidates, drawn_as=mode, assumed=mode)
    return found.law.tolist() == law_by_definition(rule, case.target, case.draft, case.candidates, mode)


@pytest.mark.parametrize(("rule", "draw"), [(rule, draw) for rule, draws in CASES for draw in draws])
def test_enumeration_is_the_definition(rule, draw):
    @settings(max_examples=40)
    @given(verification_cases(4, 3, draws=draw))
    def check(case):
        assert agree(rule, draw, case)

    check()


def test_a_marginal_that_forgets_the_final_resample_is_caught(monkeypatch):
    """The planted fault: the law without its last part."""
    monkeypatch.setattr(Marginal, "law", property(lambda self: sum(self.parts[1:-1], self.parts[0])))

    @settings(max_examples=100)
    @given(verification_cases(4, 2))
    def check(case):
        assert agree(rules.SpecInfer(), "iid", case)

    with pytest.raises(AssertionError):
        check()


def test_a_marginal_that_follows_one_path_for_all_is_caught(monkeypatch):
    """The planted fault: every rejected token treated as the first one, as if residuals were token-free."""
    whole = rules.ResiSpec.reject
    monkeypatch.setattr(
        rules.ResiSpec, "reject", lambda self, stage, token: whole(self, stage, np.zeros_like(token))
    )
    p, q = np.array([0.25, 0.25, 0.5]), np.array([0.5, 0.375, 0.125])
    faulty = enumerate_paths(
        rules.ResiSpec(), p, q, 1, drawn_as=draw_mode("iid"), assumed=draw_mode("iid")
    ).law
    monkeypatch.undo()
    assert law_by_definition(rules.ResiSpec(), p, q, 1, draw_mode("iid")) != pytest.approx(faulty.tolist())
