"""The tables that between them show most faults (see ``audit.replay.tables``)."""

from __future__ import annotations

import pytest

from resispec_core.audit.replay import tables


@pytest.fixture
def hard_pair():
    """A target and a draft over three tokens, with zeros and strong contrasts between rows."""
    return tables.hard_pair(3)
