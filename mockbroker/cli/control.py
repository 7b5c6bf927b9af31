"""`mockbroker action`, `clock`, `snapshot`, `settle` and `reset`: control a running cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from mockbroker.cli.admin_client import AdminClient, admin_command, milliseconds, named_values


@click.command()
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]…")
@admin_command
def action(api: AdminClient, name: str, arguments: tuple[str, ...]) -> None:
    """Carry out the action NAME.

    \b
    mockbroker action stop_broker node=2 how=unclean
    mockbroker action move_leader topic=orders partition=0 node=3
    """
    api.post("/v1/actions", {name: named_values(arguments)})


@click.group(no_args_is_help=True)
def clock() -> None:
    """Show, freeze and advance the cluster's clock."""


@clock.command()
@admin_command
def show(api: AdminClient) -> None:
    """Print the cluster's time and its rate."""
    _print(api.get("/v1/clock"))


@clock.command()
@admin_command
def freeze(api: AdminClient) -> None:
    """Freeze the clock."""
    _print(api.post("/v1/clock", {"freeze": True}))


@clock.command()
@admin_command
def thaw(api: AdminClient) -> None:
    """Follow real time again."""
    _print(api.post("/v1/clock", {"freeze": False}))


@clock.command()
@click.argument("rate", type=float)
@admin_command
def rate(api: AdminClient, rate: float) -> None:
    """Run RATE seconds for each second of real time."""
    _print(api.post("/v1/clock", {"rate": rate}))


@clock.command()
@click.argument("duration")
@click.option(
    "--only",
    metavar="PART",
    help="Advance only retention, compaction, groups, group:ID or transactions.",
)
@click.option("--with-connected", is_flag=True, help="Expire sessions of connected members too.")
@admin_command
def advance(api: AdminClient, duration: str, only: str | None, with_connected: bool) -> None:
    """Advance the clock by DURATION (45s, 2h, 7d) and run due timers in order."""
    body: dict[str, Any] = {
        "advance_ms": milliseconds(duration),
        "spare_connected": not with_connected,
    }
    if only is not None:
        body["only"] = only
    _print(api.post("/v1/clock", body, wait_s=120))


def _print(clock: dict[str, Any]) -> None:
    at = datetime.fromtimestamp(clock["now_ms"] / 1000, UTC)
    state = "frozen" if clock["rate"] == 0 else f"rate {clock['rate']:g}"
    click.echo(f"{at.isoformat(timespec='milliseconds')} {clock['now_ms']} {state}")


@click.group(no_args_is_help=True)
def snapshot() -> None:
    """Take and restore snapshots of a running cluster, which end with it."""


@snapshot.command()
@click.argument("name", default="default")
@admin_command
def take(api: AdminClient, name: str) -> None:
    """Take a snapshot with the name NAME."""
    api.post("/v1/snapshot", {"name": name})


@snapshot.command("list")
@admin_command
def list_snapshots(api: AdminClient) -> None:
    """Print the names of the snapshots."""
    for each in api.get("/v1/snapshots"):
        click.echo(each["name"])


@snapshot.command()
@click.argument("name", default="default")
@click.option(
    "--producers",
    type=click.Choice(["keep", "resume"]),
    default="keep",
    show_default=True,
    help="Refuse idempotent producers that are ahead of the snapshot, or let them resume.",
)
@admin_command
def restore(api: AdminClient, name: str, producers: str) -> None:
    """Restore snapshot NAME. Connections stay open."""
    api.post("/v1/restore", {"name": name, "producers": producers})


@click.command()
@click.option("--timeout", default="30s", show_default=True, help="Timeout.")
@admin_command
def settle(api: AdminClient, timeout: str) -> None:
    """Wait until the cluster is at rest; exit with 1 on a timeout.

    Then every replica is in sync, every partition's preferred leader leads, and every group is
    stable or empty.
    """
    wait_ms = milliseconds(timeout)
    api.post("/v1/settle", {"timeout_ms": wait_ms}, wait_s=wait_ms / 1000)


@click.command()
@admin_command
def reset(api: AdminClient) -> None:
    """Reset the cluster to its start: initial topics, no rules."""
    api.post("/v1/reset", {})
