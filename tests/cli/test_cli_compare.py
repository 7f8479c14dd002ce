"""`resispec compare` on a small store, with its JSON, its plot, and what it refuses."""

import json

import pytest
from click.testing import CliRunner

from resispec_core import InputError
from resispec_core.cli.compare import compare
from resispec_core.llama.store import sample_store


class TwoPositions:
    """The first two rows of the shipped sample."""

    def __init__(self, store):
        self._store = store
        self.path, self.vocabulary = store.path, store.vocabulary

    def __len__(self):
        return 2

    def row(self, place):
        return self._store.row(place)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr("resispec_core.cli.compare.sample_store", lambda: TwoPositions(sample_store()))
    return lambda *given: CliRunner().invoke(compare, given, standalone_mode=False)


def test_json_and_plot(run, tmp_path):
    plot = tmp_path / "out.svg"
    done = run(
        "--rule", "shaped", "--rule", "resispec", "-n", "2", "--temperature", "1", "--temperature", "0.6",
        "--plot", str(plot), "--json",
    )  # fmt: skip
    assert done.exception is None
    data = json.loads(done.stdout)
    assert [(row["rule"], row["temperature"]) for row in data["comparisons"]] == [
        ("shaped", 1.0), ("resispec", 1.0), ("shaped", 0.6), ("resispec", 0.6),
    ]  # fmt: skip
    shaped, published = data["comparisons"][:2]
    assert shaped["verdict"] == "EXACT_WITHIN"
    assert shaped["means"]["acceptance"] <= shaped["means"]["ceiling"]
    assert 0 < shaped["gap_closed"] <= 1
    assert published["verdict"] == "BIASED"
    assert published["means"]["acceptance"] > published["means"]["ceiling"]
    text = plot.read_text()
    assert text.startswith("<?xml")
    assert text.count("<path") > 10


def test_the_table_names_every_rule(run):
    done = run("--rule", "specinfer", "--rule", "shaped", "-n", "1", "-n", "2")
    assert done.exception is None
    for word in ("T = 1, 2 positions", "specinfer", "shaped", "EXACT_WITHIN", "gap closed"):
        assert word in done.stdout


def test_an_interrupt_keeps_the_rows_done(run, monkeypatch):
    import resispec_core.cli.compare as module

    real, calls = module.measure, []

    def measure(*given, **options):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given, **options)

    monkeypatch.setattr(module, "measure", measure)
    done = run("--rule", "specinfer", "-n", "1", "-n", "2", "--json")
    data = json.loads(done.stdout)
    assert data["interrupted"] is True
    assert len(data["comparisons"]) == 1
    assert done.return_value == 130


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--plot", "out.docx"), "ends in .svg"),
        (("--plot", "missing-folder/out.svg"), "does not exist"),
        (("--rule", "shapd"), "did you mean 'shaped'"),
        (("-n", "0"), "at least one token"),
        (("--temperature", "-1"), "temperature is -1"),
        (("--logits", "no-such-store"), "no-such-store"),
    ],
)
def test_bad_input(run, given, words):
    done = run(*given)
    assert isinstance(done.exception, InputError)
    assert words in str(done.exception)
