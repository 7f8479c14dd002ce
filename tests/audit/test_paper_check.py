"""The paper's own check passes for any proxies; the law does not."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core import audit
from resispec_core.audit import paper_check_kl, paper_check_law
from resispec_core.testing.strategies import rational_laws, verification_cases


@settings(max_examples=300)
@given(st.data(), rational_laws(3, 3))
def test_random_proxies_pass_exactly(data, target):
    proxies = data.draw(st.lists(rational_laws(3, 3), max_size=4))
    assert paper_check_law(target, proxies).tolist() == target.tolist()
    assert paper_check_kl(target, proxies) == 0.0


def test_random_proxies_pass_at_a_real_vocabulary():
    rng = np.random.default_rng(0)
    target, *proxies = rng.dirichlet(np.full(49_152, 0.01), size=5)
    # Rounding of relative size ε per entry gives KL of order ε², summed over V terms.
    assert paper_check_kl(target, proxies) < 49_152 * np.finfo(float).eps


@settings(max_examples=200)
@given(verification_cases(4, 3))
def test_the_check_is_silent_on_the_published_rule(case):
    assert audit("resispec", case.target, case.draft, case.candidates).paper_check_kl == 0.0
