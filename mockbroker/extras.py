"""The extras of the package, and how to install one that is missing.

A command installs from the directory that the package came from, or else the packages of the extra
by their names. It never asks an index for the package itself, whose name another project may have.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from urllib.parse import unquote, urlsplit

PACKAGE = "mockbroker"
# Extras for people who use mockbroker. The others are for its development.
EXTRAS = {
    "pytest": "the fixtures",
    "tls": "TLS listeners and signed tokens",
    "pipeline": "the journal's tables, the audit and reports",
    "hypothesis": "strategies and a state machine for Hypothesis",
    "spark": "Spark jobs",
    "clients": "clients of other makers",
}

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OWN_EXTRAS = re.compile(rf"{PACKAGE}\[([^\]]+)\]")
_OF_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def requirements(own: Distribution, extra: str | None = None) -> list[str]:
    """The distributions that an extra adds, or, without one, those that are always needed."""
    return [name_of(each) for each in specifiers(own, extra)]


def specifiers(own: Distribution, extra: str | None = None) -> list[str]:
    """The same with their versions, such as `duckdb>=1.2`."""
    found = []
    for line in own.requires or ():
        needed, _, marker = line.partition(";")
        of_extra = _OF_EXTRA.search(marker)
        if (of_extra.group(1) if of_extra else None) != extra:
            continue
        own_extras = _OWN_EXTRAS.match(needed)
        if own_extras is None:
            found.append(needed.strip())
        else:  # an extra that includes others
            for other in own_extras.group(1).split(","):
                found += specifiers(own, other.strip())
    return found


def name_of(specifier: str) -> str:
    """The name of the distribution that a specifier requires."""
    name = _NAME.match(specifier)
    assert name is not None, specifier
    return name.group()


def extra_of(module: str) -> str | None:
    """The extra that brings a module; None if none does, or the package is not installed."""
    try:
        own = distribution(PACKAGE)
    except PackageNotFoundError:  # its sources alone, as on a worker of Spark
        return None
    name = module.replace("_", "-")
    return next((extra for extra in EXTRAS if name in requirements(own, extra)), None)


def install_command(own: Distribution | None = None, extra: str | None = None) -> str:
    """The command that installs an extra, or without one what is always needed."""
    own = own or distribution(PACKAGE)
    with suppress(ValueError, KeyError):
        origin = urlsplit(json.loads(own.read_text("direct_url.json") or "{}")["url"])
        if origin.scheme == "file":
            path = unquote(origin.path)
            return f"pip install '{path}[{extra}]'" if extra else f"pip install '{path}'"
    return " ".join(["pip install", *(f"'{each}'" for each in specifiers(own, extra))])


def missing(what: str, module: str) -> str:
    """The message for a module that cannot be imported: `what` needs it, and how to install it."""
    extra = extra_of(module)
    remedy = f"pip install {module}" if extra is None else install_command(extra=extra)
    return f"{what} {module}: {remedy}"
