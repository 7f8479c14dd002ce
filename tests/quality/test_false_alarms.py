"""No false alarm: exact rules on 10,000 Hypothesis cases in rationals, through enumeration and through replay.

Hypothesis chooses the cases first (its own random source may not run inside a replay's block of patches). Enumeration
then takes all of them and the replay of the same rule every fourth; ``RESISPEC_SLOW=1`` replays all of 12,000, with up
to five tokens and three candidates. Replay also has 10,000 seeded cases in tests/replay.
"""

import os
from collections import Counter
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from resispec_core import audit, parse_law, rules
from resispec_core.audit import Verdict
from resispec_core.audit.replay import RefusalError, replay_verify
from resispec_core.audit.replay.patches import controlled
from resispec_core.errors import InputError
from resispec_core.testing import VerificationCase, verification_cases

SLOW = os.environ.get("RESISPEC_SLOW") == "1"
COUNT, VOCABULARY, CANDIDATES, REPLAYED = (12_000, 5, 3, 1) if SLOW else (10_000, 4, 2, 4)
"""``REPLAYED``: one case in so many is replayed."""
DRAWS = ("iid", "without-replacement", "top-k")
NOT_EXACT = ("typical", "resispec")


def chosen(count):
    """``count`` verification cases of Hypothesis."""
    cases = []

    @settings(
        max_examples=count, database=None, deadline=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=verification_cases(VOCABULARY, CANDIDATES, draws=DRAWS))
    def collect(case):
        cases.append(case)

    collect()
    return cases


@cache
def exact_rules(draw, candidates):
    """Every exact rule that verifies this many candidates drawn like this."""
    found = []
    for name in rules.RULES:
        if name in NOT_EXACT or (name == "single-draft" and candidates > 1):
            continue
        rule = rules.rule(name)
        try:
            rule.draw_mode(draw)
        except InputError:
            continue
        found.append(rule)
    return found


def replayed_rule(rule, case):
    def verify(target, draft, drawn, rng):
        coins = [rng.random() for _ in range(rule.coins(len(drawn)))]
        return rule.verify(target, draft, drawn, coins, case.draw).token

    return replay_verify(
        verify, case.target, case.draft, case.candidates, draw=case.draw, numbers="rational", monte_carlo=0
    )


def alarms(cases, pick, replayed=1):
    """Cases on which an engine does not say EXACT, and how often each rule was audited."""
    wrong, seen = [], Counter()
    picked = [(case, pick(place, case)) for place, case in enumerate(cases)]
    for case, rule in picked:
        report = audit(rule, case.target, case.draft, case.candidates, draw=case.draw)
        seen[rule.name] += 1
        if report.verdict is not Verdict.EXACT:
            wrong.append(("enumeration", rule.name, case, report.verdict))
    with controlled():
        for case, rule in picked[::replayed]:
            if refused(rule, case):
                continue
            report = replayed_rule(rule, case)
            seen["replays"] += 1
            if report.verdict is not Verdict.EXACT:
                wrong.append(("replay", rule.name, case, str(report)))
    return wrong, seen


def refused(rule, case):
    """Ranks of several candidates compared with one another: coins against coins, which the replay does not follow."""
    return rule.name == "optimal" and case.candidates > 1


def in_turn(place, case):
    among = exact_rules(case.draw, case.candidates)
    return among[place % len(among)]


def test_no_false_alarm_on_ten_thousand_hypothesis_cases():
    cases = chosen(COUNT)
    wrong, seen = alarms(cases, in_turn, REPLAYED)
    assert len(cases) >= 10_000
    assert wrong == []
    replays = seen.pop("replays")
    assert replays > 0.9 * COUNT / REPLAYED
    assert set(seen) == set(rules.RULES) - set(NOT_EXACT)
    assert min(seen.values()) >= 100
    assert len({repr(case) for case in cases}) > COUNT / 4, "Hypothesis repeats itself"


def test_what_is_left_out_of_the_replay_is_refused_by_name():
    case = VerificationCase(parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10"), 2)
    assert refused(rules.rule("optimal"), case)
    with pytest.raises(RefusalError, match="two coins are compared at optimal"):
        replayed_rule(rules.rule("optimal"), case)


def test_the_same_run_sounds_where_it_should():
    """Planted fault: the published rule in the place of an exact one."""
    cases = [case for case in chosen(400) if case.draw == "iid"]
    wrong, _ = alarms(cases, lambda place, case: rules.ResiSpec())
    assert {engine for engine, *_ in wrong} == {"enumeration", "replay"}
    assert len(wrong) > 10
