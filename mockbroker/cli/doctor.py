"""`mockbroker doctor`: the requirements on this machine, and the remedies of missing ones."""

from __future__ import annotations

import platform
import shutil
import socket
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from typing import Literal, NamedTuple

import click
import msgspec

from mockbroker.cli.admin_options import DEFAULT_ADMIN_PORT
from mockbroker.cli.cluster_options import DEFAULT_PORT
from mockbroker.cli.common import json_option
from mockbroker.extras import EXTRAS, PACKAGE, install_command, requirements
from mockbroker.spark.errors import SparkSetupError
from mockbroker.spark.installation import check_java, find_spark

DEFAULT_BROKERS = 3
# Each connection takes one, and a test suite may have hundreds.
OPEN_FILES_MIN = 1024


class CheckedItem(NamedTuple):
    """One examined item. `remedy` is empty if nothing is to be done."""

    name: str
    state: Literal["ok", "missing", "broken"]
    found: str
    remedy: str = ""


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check Python, packages, extras, Java, Maven, Spark, ports and limits.

    The exit code is 1 if a cluster cannot run, and 0 if only something optional is missing.
    """
    findings = list(examine())
    if as_json:
        click.echo(msgspec.json.encode([each._asdict() for each in findings]))
    else:
        width = max(len(each.name) for each in findings)
        for each in findings:
            click.echo(f"{each.state:8} {each.name:{width}}  {each.found}")
            if each.remedy:
                click.echo(f"{'':8} {'':{width}}  {each.remedy}")
    return int(any(each.state == "broken" for each in findings))


def examine() -> Iterator[CheckedItem]:
    """All examined items, in the order of the output."""
    yield CheckedItem("python", "ok", f"{platform.python_version()} at {sys.executable}")
    own = distribution(PACKAGE)
    yield CheckedItem(PACKAGE, "ok", f"{own.version} on {platform.platform(terse=True)}")
    yield _required(own)
    for extra, purpose in EXTRAS.items():
        yield _extra(own, extra, purpose)
    yield _java()
    yield _maven()
    yield _spark()
    for port in (*range(DEFAULT_PORT, DEFAULT_PORT + DEFAULT_BROKERS), DEFAULT_ADMIN_PORT):
        yield _port(port)
    yield _open_files()


def _required(own: Distribution) -> CheckedItem:
    """The packages that every cluster needs."""
    absent = [name for name in requirements(own) if not _is_installed(name)]
    if absent:
        return CheckedItem(
            "packages", "broken", f"without {', '.join(absent)}", install_command(own)
        )
    return CheckedItem("packages", "ok", "all that a cluster needs")


def _extra(own: Distribution, extra: str, purpose: str) -> CheckedItem:
    absent = [name for name in requirements(own, extra) if not _is_installed(name)]
    if absent:
        return CheckedItem(
            f"[{extra}]",
            "missing",
            f"no {', '.join(absent)}: needed for {purpose}",
            install_command(own, extra),
        )
    return CheckedItem(f"[{extra}]", "ok", purpose)


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _java() -> CheckedItem:
    try:
        spark = find_spark().version
    except SparkSetupError:
        spark = "4.0.0"
    try:
        return CheckedItem("java", "ok", f"Java {check_java(spark)}")
    except SparkSetupError as error:
        found, _, remedy = str(error).partition(": ")
        return CheckedItem("java", "missing", f"{found}: needed for Spark", remedy)


def _maven() -> CheckedItem:
    program = shutil.which("mvn")
    if program is None:
        return CheckedItem(
            "maven",
            "missing",
            "no mvn on the PATH: needed once, for the jars of Spark's Kafka connector",
            "install Maven, or name a directory of jars in MOCKBROKER_SPARK_JARS",
        )
    return CheckedItem("maven", "ok", program)


def _spark() -> CheckedItem:
    try:
        found = find_spark()
    except SparkSetupError as error:
        words, _, remedy = str(error).partition(": ")
        return CheckedItem("spark", "missing", words, remedy)
    return CheckedItem("spark", "ok", f"{found.version} at {found.home}")


def _port(port: int) -> CheckedItem:
    name = f"port {port}"
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError as error:
            flag = "--admin-port" if port == DEFAULT_ADMIN_PORT else "--port"
            remedy = f"mockbroker serve {flag} 0 takes free ports"
            return CheckedItem(name, "missing", error.strerror or str(error), remedy)
    return CheckedItem(name, "ok", "free")


def _open_files() -> CheckedItem:
    try:
        import resource
    except ImportError:
        return CheckedItem("open files", "ok", "no limit is known on this system")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= OPEN_FILES_MIN:
        return CheckedItem("open files", "ok", f"{soft} at a time")
    remedy = f"ulimit -n {min(4 * OPEN_FILES_MIN, hard)}"
    return CheckedItem("open files", "missing", f"only {soft} at a time", remedy)
