"""The formal proofs compile, rest on nothing but the library, and reject wrong statements."""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORMAL = ROOT / "proofs" / "formal"
PLANTED = Path(__file__).parent / "planted"
COQC = ["coqc", "-q", "-Q", ".", "Resispec", "-w", "-notation-overridden,-ambiguous-paths"]
CLOSED = "Closed under the global context"
# Every way in which Coq accepts a statement without a proof.
UNPROVED = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?|Unset\s+Guard\s+Checking|bypass_check"
    r"|type_in_type|native_cast_no_check|vm_cast_no_check|exact_no_check)\b"
)
STATEMENT = re.compile(r"^(?:Theorem|Corollary)\s+(\w+)", re.MULTILINE)
RIGHT = re.compile(r"^.*\(\* right: (.*) \*\)$", re.MULTILINE)

needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None,
    reason="coqc is missing (Debian: coq, libcoq-mathcomp-algebra, libcoq-mathcomp-algebra-tactics)",
)


def code_of(path: Path) -> str:
    """The file without its comments (none of ours is nested)."""
    return re.sub(r"\(\*.*?\*\)", "", path.read_text(), flags=re.DOTALL)


def unproved_words(path: Path) -> list[str]:
    return UNPROVED.findall(code_of(path))


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every proof compiled, once for all test processes; output.txt holds what Coq printed."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = base / "formal"
    with (base / "formal.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "output.txt").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for source in [*FORMAL.glob("*.v"), FORMAL / "Makefile", FORMAL / "_CoqProject"]:
                shutil.copy(source, folder)
            done = subprocess.run(["make"], cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]
            (folder / "output.txt").write_text(done.stdout)
    return folder


def compile_text(folder: Path, tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    source = tmp_path / "planted.v"
    source.write_text(text)
    return subprocess.run([*COQC, str(source)], cwd=folder, capture_output=True, text=True, check=False)


def test_every_file_is_compiled() -> None:
    listed = [line for line in (FORMAL / "_CoqProject").read_text().split() if line.endswith(".v")]
    assert sorted(listed) == sorted(f.name for f in FORMAL.glob("*.v"))


def test_nothing_is_admitted() -> None:
    found = {f.name: words for f in FORMAL.glob("*.v") if (words := unproved_words(f))}
    assert not found


@pytest.mark.parametrize("name", ["admitted", "conjecture"])
def test_the_search_reports_planted_gaps(name: str) -> None:
    assert unproved_words(PLANTED / "unproved" / f"{name}.v")


def test_every_theorem_prints_its_assumptions() -> None:
    stated = {n for f in FORMAL.glob("*.v") for n in STATEMENT.findall(code_of(f))}
    printed = re.findall(r"Print Assumptions (\w+)\.", (FORMAL / "assumptions.v").read_text())
    assert len(printed) == len(set(printed))
    assert stated == set(printed)


def test_every_theorem_is_explained() -> None:
    stated = {n for f in FORMAL.glob("*.v") for n in STATEMENT.findall(code_of(f))}
    explained = set(re.findall(r"`(\w+)`", (FORMAL / "README.md").read_text()))
    assert not stated - explained


@needs_coq
def test_no_theorem_rests_on_an_axiom(compiled: Path) -> None:
    asked = (FORMAL / "assumptions.v").read_text().count("Print Assumptions")
    output = (compiled / "output.txt").read_text()
    assert asked > 0
    assert output.count(CLOSED) == asked
    assert "Axioms:" not in output


@needs_coq
def test_printed_assumptions_give_a_conjecture_away(compiled: Path, tmp_path: Path) -> None:
    done = compile_text(compiled, tmp_path, (PLANTED / "unproved" / "conjecture.v").read_text())
    assert done.returncode == 0, done.stderr[-2000:]
    assert CLOSED not in done.stdout
    assert "Axioms:" in done.stdout


@needs_coq
@pytest.mark.parametrize("path", sorted(PLANTED.glob("*.v")), ids=lambda p: p.stem)
def test_wrong_statement_does_not_compile(path: Path, compiled: Path, tmp_path: Path) -> None:
    wrong = path.read_text()
    right, changed = RIGHT.subn(lambda m: m.group(1), wrong)
    assert changed == 1
    # With the right statement the same script is accepted, so it is the statement that is refused below.
    accepted = compile_text(compiled, tmp_path, right)
    assert accepted.returncode == 0, accepted.stderr[-2000:]
    refused = compile_text(compiled, tmp_path, wrong)
    assert refused.returncode != 0
    assert "Error" in refused.stderr
    assert "Syntax error" not in refused.stderr
