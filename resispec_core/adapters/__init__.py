"""Auditing samplers of published packages, one file a library. Nothing is imported until used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

from resispec_core.adapters.base import Audited
from resispec_core.errors import InputError

PACKAGES = ("transformers", "flashspec", "economize", "mini-infer", "speculative-decoding")
"""Packages with an adapter; each module here has ``DISTRIBUTION`` and ``audit() -> list[Audited]``."""


def audit_package(name: str) -> list[Audited]:
    """Audit every known sampler of an installed package; ``InputError`` where it is unknown or not installed."""
    if name not in PACKAGES:
        raise InputError(f"no adapter for package {name!r}; known: {', '.join(PACKAGES)}")
    module = import_module(f"resispec_core.adapters.{name.replace('-', '_')}")
    distribution: str = module.DISTRIBUTION
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise InputError(f"package {distribution!r} is not installed; install it to audit it") from None
    run: Callable[[], list[Any]] = module.audit
    return run()


__all__ = ["PACKAGES", "Audited", "audit_package"]
