"""`mockbroker fault`: add fault plans to a running cluster, and list their hits."""

from __future__ import annotations

from typing import Any

import click

from mockbroker.cli.admin_client import (
    AdminClient,
    admin_command,
    milliseconds,
    read_data,
    read_documents,
)
from mockbroker.cli.common import json_option
from mockbroker.cli.output import print_json, print_table


@click.group(no_args_is_help=True)
def fault() -> None:
    """Inject faults into a running cluster by rules, written in YAML or JSON."""


@fault.command()
@click.argument("source", metavar="PLAN")
@click.option("--name", help="Name of the plan.  [default: the name in PLAN, or fault-1, …]")
@json_option
@admin_command
def add(api: AdminClient, source: str, name: str | None, as_json: bool) -> None:
    """Add PLAN: a file (- is standard input) or a rule in braces.

    \b
    mockbroker fault add '{match: {api: Produce}, when: {times: 1}, do: {drop_reply: {}}}'
    """
    plans = read_documents(source)
    if name is not None:
        if len(plans) != 1:
            raise click.UsageError("--name needs a single plan; the file has several")
        plans[0]["name"] = name
    added = []
    for data in plans:
        added.append(api.post("/v1/faults", data))
        if not as_json:
            click.echo(added[-1]["name"])
    if as_json:
        print_json(added)


@fault.command("list")
@json_option
@admin_command
def list_faults(api: AdminClient, as_json: bool) -> None:
    """List the rules in force, with their hits."""
    plans = api.get("/v1/faults")
    if as_json:
        print_json(plans)
        return
    rows = [_row(rule) for each in plans for rule in each["rules"]]
    print_table(("PLAN", "RULE", "HITS", "LEFT", "WHY"), rows)


def _row(rule: dict[str, Any]) -> tuple[str | int | None, ...]:
    left = "-" if rule["left"] is None else rule["left"]
    return rule["plan"], rule["name"], rule["hits"], left, rule["why"]


@fault.command()
@click.argument("name")
@json_option
@admin_command
def show(api: AdminClient, name: str, as_json: bool) -> None:
    """Print a plan as YAML, or as JSON, for a later `fault add`."""
    from msgspec import yaml

    plan = api.get(f"/v1/faults/{name}")["plan"]
    if as_json:
        print_json(plan)
    else:
        click.echo(yaml.encode(plan), nl=False)


@fault.command()
@click.option(
    "--yaml", "format_", flag_value="yaml", default=True, help="Print YAML, for `fault add`."
)
@click.option("--python", "format_", flag_value="python", help="Print Python, for a test.")
@admin_command
def export(api: AdminClient, format_: str) -> None:
    """Print all rules in force, for a later `fault add`."""
    click.echo(api.read(f"/v1/export/faults?format={format_}"), nl=False)


@fault.command()
@click.argument("name")
@click.option("--hits", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--timeout", default="10s", show_default=True, help="Real time: 250ms, 10s, 5m.")
@json_option
@admin_command
def wait(api: AdminClient, name: str, hits: int, timeout: str, as_json: bool) -> None:
    """Wait until a rule has fired; on a timeout print why it has not, and exit with 1."""
    timeout_ms = milliseconds(timeout)
    body = {"hits": hits, "timeout_ms": timeout_ms}
    rule = api.post(f"/v1/faults/{name}/wait", body, wait_s=timeout_ms / 1000)
    if as_json:
        print_json(rule)
    else:
        click.echo(rule["why"])


@fault.command()
@click.argument("name")
@admin_command
def remove(api: AdminClient, name: str) -> None:
    """Remove a plan or a rule. Held requests are released."""
    api.delete(f"/v1/faults/{name}")


@fault.command()
@admin_command
def clear(api: AdminClient) -> None:
    """Remove all rules. Held requests are released."""
    api.delete("/v1/faults")


@fault.command()
@json_option
@admin_command
def held(api: AdminClient, as_json: bool) -> None:
    """List the held requests."""
    found = api.get("/v1/held")
    if as_json:
        print_json(found)
        return
    names = ("id", "rule", "phase", "held_ms", "api", "client_id")
    columns = [name.upper().replace("_", " ") for name in names]
    print_table(columns, [[each[name] for name in names] for each in found])


@fault.command()
@click.argument("held_id", type=int, metavar="ID")
@click.option("--edit", help="Change fields before the release: {path: value}.")
@click.option("--answer", metavar="ERROR", help="Answer with this error.")
@click.option("--drop", "verdict", flag_value="drop", help="Drop it.")
@click.option("--close", "verdict", flag_value="close", help="Close the connection.")
@click.option("--reset", "verdict", flag_value="reset", help="Reset the connection.")
@admin_command
def release(
    api: AdminClient, held_id: int, edit: str | None, answer: str | None, verdict: str | None
) -> None:
    """Release a held request."""
    from mockbroker_protocol.types import parse_integer

    if answer is not None and verdict is not None:
        raise click.UsageError("--answer excludes --drop, --close and --reset")
    body: dict[str, Any] = {"verdict": "answer" if answer is not None else verdict or "release"}
    if answer is not None:
        code = parse_integer(answer)
        body["error"] = answer if code is None else code
    if edit is not None:
        body["edit"] = read_data(edit)
    api.post(f"/v1/held/{held_id}", body)
