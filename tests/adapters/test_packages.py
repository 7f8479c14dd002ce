"""Optional: the small published packages of packages.txt, audited where they are installed in exactly that version."""

import re
from importlib import metadata
from pathlib import Path

import pytest

from resispec_core.adapters import PACKAGES, audit_package
from resispec_core.audit import Verdict
from resispec_core.errors import InputError

PINNED = dict(
    re.findall(
        r"^([\w-]+)==([\d.]+) --hash=sha256:[0-9a-f]{64}$",
        Path(__file__).with_name("packages.txt").read_text(),
        re.M,
    )
)
LOSSY = ("typical_sample", "decoding.verifiers typical")


def installed(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def test_every_adapter_but_transformers_is_pinned():
    assert set(PINNED) == set(PACKAGES) - {"transformers"}


@pytest.mark.parametrize("name", PINNED)
def test_package_audits_as_stated(name):
    version = installed(name)
    if version is None:
        with pytest.raises(InputError, match="is not installed"):
            audit_package(name)
        pytest.skip(f"{name} is not installed; see tests/adapters/packages.txt")
    if version != PINNED[name]:
        pytest.skip(f"{name} {version} is installed; these expectations are for {PINNED[name]}")
    for item in audit_package(name):
        lossy = item.function in LOSSY
        assert item.report.verdict is (Verdict.LOSSY_BY_DESIGN if lossy else Verdict.EXACT_WITHIN), str(item)
        assert (item.report.total_variation > 0.01) if lossy else (item.report.total_variation < 1e-7)
