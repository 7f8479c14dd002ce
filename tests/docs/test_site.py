"""The site builds without a warning, holds every page and every public name, and a planted fault stops it."""

from __future__ import annotations

import fcntl
import importlib
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pages
import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed (extra `docs`): the site cannot be built")

ROOT = Path(__file__).parents[2]
PUBLIC = (
    "resispec_core",
    "resispec_core.rules",
    "resispec_core.audit",
    "resispec_core.audit.replay",
    "resispec_core.trees",
    "resispec_core.runs",
    "resispec_core.adapters",
    "resispec_core.testing",
    "resispec_core.gpu",
)
"""The packages with an ``__all__``."""


def build(source: Path, out: Path, builder: str = "html") -> subprocess.CompletedProcess[str]:
    """The command that docs/conf.py gives, in a process of its own."""
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "--keep-going", "-q", "-E", "-b", builder]
    places = ["-d", str(out / "doctrees"), "-c", str(source / "docs"), str(source), str(out / "site")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    return subprocess.run(command + places, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages, made once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with (base / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "built").exists():
            done = build(ROOT, base / "docs_build")
            assert done.returncode == 0, done.stderr[-5000:]
            (base / "built").touch()
    return base / "docs_build" / "site"


def inventory(site: Path) -> set[str]:
    """The documented names, from the index that the generator writes for other projects."""
    head, _, packed = (site / "objects.inv").read_bytes().partition(b"using zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2")
    return {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines() if " py:" in line}


def documented(package: str, names: set[str]) -> set[str]:
    """The public names of ``package`` that the site has, here or where they are defined."""
    module = importlib.import_module(package)
    found = set()
    for name in module.__all__:
        home = getattr(getattr(module, name), "__module__", package)
        if {f"{package}.{name}", f"{home}.{name}"} & names:
            found.add(name)
    return found


def test_every_page_is_built(site: Path) -> None:
    sources = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/api/*.rst"), *ROOT.glob("proofs/**/*.md")]
    missing = [page for page in sources if not (site / page.relative_to(ROOT)).with_suffix(".html").exists()]
    assert len(sources) > 30
    assert missing == []
    assert 'url=docs/index.html"' in (site / "index.html").read_text()


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_in_the_reference(package: str, site: Path) -> None:
    module = importlib.import_module(package)
    submodules = {name for name in module.__all__ if hasattr(getattr(module, name), "__path__")}
    assert set(module.__all__) - submodules - documented(package, inventory(site)) == set()


def test_a_name_without_an_entry_is_noticed(site: Path) -> None:
    names = inventory(site) - {"resispec_core.rules.Shaped", "resispec_core.rules.shaped.Shaped"}
    assert "Shaped" not in documented("resispec_core.rules", names)
    assert "KSeq" in documented("resispec_core.rules", names)


def test_links_of_the_pages_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    assert pages.site_faults(site) == []


def test_theorems_lead_to_their_explanation(site: Path) -> None:
    page = pages.Page((site / "docs/rules/shaped.html").read_text())
    assert "../../proofs/formal/README.html#shaped-exact" in page.links
    explained = pages.Page((site / "proofs/formal/README.html").read_text()).ids
    proved = re.findall(r"^Print Assumptions (\w+)", (ROOT / "proofs/formal/assumptions.v").read_text(), re.M)
    assert {name.replace("_", "-") for name in proved} - explained == set()


def test_faults_of_built_pages_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#there"></a><a href="c.html"></a><a href="https://x.org/"></a>'
        '<script src="https://x.org/a.js"></script><img src="data:image/png;base64,AA">'
    )
    assert pages.site_faults(tmp_path) == [
        "a.html: b.html#there",
        "a.html: c.html",
        "a.html loads https://x.org/a.js",
    ]


PLANTED = {
    "docs/findings.md": ("[closed_forms.md](closed_forms.md)", "[closed_forms.md](closed_form.md)"),
    "docs/verdicts.md": ("README.md#ceiling)", "README.md#floor)"),
    "docs/api/audit.rst": (".. autofunction:: enumerate_paths", ".. autofunction:: enumerate_path"),
    "docs/api/core.rst": (":class:`resispec_core.audit.Verdict`", ":class:`resispec_core.audit.Verdicts`"),
    "docs/index.md": ("\nrecording\n", "\n"),
}
"""File -> what is replaced by what: a dead link, a dead anchor, a name that is gone, one that never was, a lost
page."""
REPORTED = (
    "closed_form.md",
    "floor",
    "enumerate_path",
    "Verdicts",
    "docs/recording.md: WARNING: document isn't included",
)


def test_planted_faults_stop_the_build(tmp_path: Path) -> None:
    for name in ("docs", "proofs", "resispec_core"):
        ignored = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.vo*", "*.glob", ".*.aux")
        shutil.copytree(ROOT / name, tmp_path / "copy" / name, ignore=ignored)
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path / "copy" / name)
    for name, (right, wrong) in PLANTED.items():
        file = tmp_path / "copy" / name
        text = file.read_text()
        assert text.count(right) == 1, name
        file.write_text(text.replace(right, wrong))
    done = build(tmp_path / "copy", tmp_path / "out", builder="dummy")
    assert done.returncode != 0
    assert [words for words in REPORTED if words not in done.stderr] == []
