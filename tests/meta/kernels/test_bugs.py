"""Each planted kernel bug is caught by the build named for it; the right kernels pass all three builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from resispec_core.gpu.config import KernelConfig
from tests.meta.kernels.battery import survive
from tests.meta.kernels.bugs import BUGS, Bug, plant
from tests.shim import build

pytestmark = pytest.mark.skipif(build.unavailable() is not None, reason=str(build.unavailable()))

CONFIGS = sorted({bug.config for bug in BUGS} | {
    KernelConfig("deterministic", dtype="bfloat16", logits=True),
    KernelConfig("resispec", "uniform", cluster=2),
    KernelConfig("resispec", "waterfill", "eq13", resident=False),
    KernelConfig("shaped", cluster=2),
})  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bug_is_caught(bug: Bug, tmp_path: Path) -> None:
    kernels = plant(bug, tmp_path)
    build.build(bug.config, bug.build, kernels)  # a bug that does not compile proves nothing
    with pytest.raises((build.ShimError, AssertionError)):
        survive(bug.config, bug.build, kernels)


@pytest.mark.parametrize("flavour", ["plain", "asan", "tsan"])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_right_kernels_raise_nothing(config: KernelConfig, flavour: str) -> None:
    survive(config, flavour)


def test_there_are_bugs_for_every_build() -> None:
    assert len(BUGS) >= 20
    assert {bug.build for bug in BUGS} == {"plain", "asan", "tsan"}
