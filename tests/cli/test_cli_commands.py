"""The other commands, help texts, and the status each leaves."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest
from cli_cases import Result

from resispec_core import __version__
from resispec_core.cli.main import group
from resispec_core.rules import RULES

Run = Callable[..., Result]


def test_rules_lists_every_rule(run: Run) -> None:
    found = run("rules", "--json")
    assert found.code == 0
    listed = {rule["name"]: rule for rule in found.json["rules"]}
    assert listed.keys() == RULES.keys()
    assert listed["resispec"]["options"] == {"redistribution": "proportional", "budget": "local"}
    assert (listed["specinfer"]["lossy"], listed["typical"]["lossy"]) == (False, True)
    text = run("rules").out
    assert all(name in text for name in RULES)


def test_info_leaves_status_0(run: Run) -> None:
    found = run("info", "--json")
    assert (found.code, found.json["rows"]) == (0, len(found.json["positions"]))
    assert run("info").code == 0


def test_record_leaves_status_0_or_2(run: Run, monkeypatch: pytest.MonkeyPatch, small_store: object) -> None:
    from resispec_core.llama import record
    from resispec_core.llama.store import LogitsStore

    monkeypatch.setattr(record, "record", lambda *_, **__: LogitsStore.open(str(small_store)))
    assert run("record", "anywhere").code == 0
    refused = run("record", "anywhere", "--prompts", "no-such-file.txt")
    assert refused.code == 2
    assert "no-such-file.txt" in refused.err


def test_version(run: Run) -> None:
    found = run("--version")
    assert (found.code, found.out) == (0, f"resispec, version {__version__}\n")


def test_no_command_prints_the_help(run: Run) -> None:
    found = run()
    assert (found.code, found.err) == (0, "")
    assert found.out == run("--help").out
    for name in ("audit", "rules", "record", "info"):
        assert f"\n  {name} " in found.out
    assert "0 exact or within the stated bound, 1 biased" in found.out


@pytest.mark.parametrize("name", sorted(group.commands))
def test_every_command_and_option_is_explained(run: Run, name: str) -> None:
    command = group.commands[name]
    found = run(name, "--help")
    assert found.code == 0
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for flag in parameter.opts:
                assert flag in found.out
    assert "--json" in found.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "No such command 'nope'"),
        (("audit", "--nope"), "No such option"),
        (("audit", "--candidates", "two"), "'two' is not a valid integer"),
        (("audit", "--temperature", "warm"), "'warm' is not a valid float"),
        (("rules", "extra"), "unexpected extra argument"),
    ],
)
def test_usage_errors_exit_with_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    found = run(*arguments)
    assert found.code == 2
    assert found.out == ""
    assert message in found.err
    assert "Usage: resispec" in found.err


def test_an_option_without_its_value(run: Run) -> None:
    found = run("audit", "--rule")
    assert (found.code, found.err) == (2, "resispec: Option '--rule' requires an argument.\n")
