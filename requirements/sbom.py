"""Print a bill of materials (CycloneDX 1.6, JSON) of the package and all that it needs.

    python requirements/sbom.py [EXTRA…] > sbom.json

Names, versions and licences come from the installed distributions, which have to be the pinned
ones. The same environment always gives the same file.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent
PACKAGE = "mockbroker"
VENDORED = HERE.parent / "mockbroker/admin/console/assets/vendor/vendored.json"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", re.MULTILINE)


def pins() -> dict[str, str]:
    """The pinned version of each distribution, by its normalized name."""
    text = (HERE / "constraints.txt").read_text(encoding="utf-8")
    return {canonicalize_name(name): version for name, version in _PIN.findall(text)}


def needed(own: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    """What a distribution with some extras needs in this environment."""
    for line in own.requires or ():
        found = Requirement(line)
        if found.marker is None or any(
            found.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield found


def closure(extras: Iterable[str]) -> dict[str, set[str]]:
    """Each distribution by its normalized name, and the names of those that it needs itself."""
    found: dict[str, set[str]] = {}
    asked = {PACKAGE: frozenset(extras)}
    waiting = [PACKAGE]
    while waiting:
        name = waiting.pop()
        direct = found.setdefault(name, set())
        for each in needed(distribution(name), asked[name]):
            other = canonicalize_name(each.name)
            direct.add(other)
            more = asked.get(other, frozenset()) | each.extras
            if other not in found or more != asked[other]:
                asked[other] = frozenset(more)
                waiting.append(other)
    for direct in found.values():
        direct.discard(PACKAGE)  # an extra that names others
    return found


def component(name: str, pinned: Mapping[str, str]) -> dict[str, Any]:
    """One distribution. Raises SystemExit if another version than the pinned one is installed."""
    own = distribution(name)
    if pinned.get(name, own.version) != own.version:
        raise SystemExit(f"{name} {own.version} is installed, but {pinned[name]} is pinned")
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference(name),
        "name": name,
        "version": own.version,
        "purl": reference(name),
    }
    licence = own.metadata.get("License-Expression") or own.metadata.get("License")
    if own.metadata.get("License-Expression"):
        found["licenses"] = [{"expression": licence}]
    elif licence and "\n" not in licence:
        found["licenses"] = [{"license": {"name": licence}}]
    return found


def reference(name: str) -> str:
    """The package URL of an installed distribution."""
    return f"pkg:pypi/{name}@{distribution(name).version}"


def vendored() -> list[dict[str, Any]]:
    """The libraries whose files are part of the package."""
    listed = json.loads(VENDORED.read_text(encoding="utf-8"))
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:npm/{each['name']}@{each['version']}",
            "name": each["name"],
            "version": each["version"],
            "purl": f"pkg:npm/{each['name']}@{each['version']}",
            "licenses": [{"expression": each["license"]}],
        }
        for each in listed
    ]


def document(extras: Iterable[str] = ()) -> dict[str, Any]:
    """The bill of materials of the package with some extras."""
    graph = closure(extras)
    pinned = pins()
    others = sorted(graph.keys() - {PACKAGE})
    components = [component(name, pinned) for name in others]
    subject = {**component(PACKAGE, {}), "type": "application"}
    inside = vendored()
    components += inside
    content = json.dumps([subject, components], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": [
            {"ref": reference(name), "dependsOn": sorted(reference(each) for each in graph[name])}
            for name in [PACKAGE, *others]
        ]
        + [{"ref": each["bom-ref"], "dependsOn": []} for each in inside],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(sys.argv[1:]), indent=1) + "\n")
