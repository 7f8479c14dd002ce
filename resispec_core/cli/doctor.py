"""`resispec doctor`: what is installed, and why the GPU path is unavailable where it is."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Say what is installed, which device there is, and whether the GPU kernels compile."""
    from resispec_core.gpu.doctor import report  # only this command needs it

    found = report()
    click.echo(json.dumps(found) if as_json else "\n".join(lines(found)))


def lines(found: dict[str, Any]) -> list[str]:
    """The report for a reader."""
    result = [f"Python {found['python']} on {found['machine']}"]
    result += [f"{name:<18} {version or 'not installed'}" for name, version in found["packages"].items()]
    kernels, device = found["kernels"], found["device"]
    if kernels["compile"]:
        result.append(
            f"kernels            compile for {kernels['architecture']} "
            f"({kernels['registers']} registers, {kernels['spilled']} bytes spilled)"
        )
    else:
        result.append(f"kernels            do not compile: {kernels['why_not']}")
    if device:
        result.append(
            f"device             {device['name']}, compute capability {device['compute_capability']}, "
            f"{device['memory_bytes'] / 2**30:.0f} GiB, driver {device['driver']}, runtime {device['runtime']}"
        )
    result.append(
        "GPU path           available" if found["gpu_path"] else f"GPU path           {found['why_not']}"
    )
    return result
