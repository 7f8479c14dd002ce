"""How launches are laid out: clusters, slices and shared memory."""

from __future__ import annotations

import pytest

from resispec_core.gpu.config import HEADER_BYTES, ITEM_BYTES, KernelConfig, Layout, layout
from tests.shim import build


@pytest.mark.parametrize(
    ("vocabulary", "dtype", "architecture", "expected"),
    [
        (1, "float32", 90, Layout(1, 8, True)),
        (32_000, "bfloat16", 90, Layout(2, 16_000, True)),
        (32_000, "float32", 90, Layout(4, 8_000, True)),
        (128_256, "bfloat16", 90, Layout(8, 16_032, True)),
        (152_064, "float32", 90, Layout(8, 19_008, True)),
        (262_144, "float32", 90, Layout(1, 262_144, False)),
        (4_099, "float32", 80, Layout(1, 4_104, True)),
        (32_000, "float32", 80, Layout(1, 32_000, False)),
        (32_000, "float32", 120, Layout(1, 32_000, False)),
    ],
)
def test_known_layouts(vocabulary: int, dtype: str, architecture: int, expected: Layout) -> None:
    assert layout(vocabulary, dtype, rows=2, architecture=architecture) == expected


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("dtype", list(ITEM_BYTES))
def test_every_vocabulary_is_covered_and_fits(dtype: str, architecture: int) -> None:
    limit = (227 if architecture == 90 else 96) * 1024
    for vocabulary in [*range(1, 300), 4_099, 32_000, 49_152, 128_256, 151_936, 152_064, 2**18]:
        for rows in (1, 2):
            plan = layout(vocabulary, dtype, rows=rows, architecture=architecture)
            assert plan.cluster * plan.slice >= vocabulary
            assert plan.shared_bytes(ITEM_BYTES[dtype], rows) <= limit
            assert plan.resident or plan.cluster == 1


@pytest.mark.skipif(build.unavailable() is not None, reason=str(build.unavailable()))
def test_the_header_is_as_large_as_the_kernels_think() -> None:
    assert build._load(build.build(KernelConfig())).rs_header_bytes() == HEADER_BYTES
