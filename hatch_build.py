"""The parts of the metadata that depend on where the project is built.

The README has relative links, which lead somewhere in a checkout alone. A page of an index needs
absolute ones. A release names its repository in the variable MOCKBROKER_REPOSITORY, as a URL; the
links then lead to the files of the tag, and the project's URLs are those of the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "MOCKBROKER_REPOSITORY"
# A link or image whose target is a path, perhaps with an anchor.
_RELATIVE = re.compile(r"(?<=\]\()(?!https?://|#|mailto:)([^)\s]+)(?=\))")


def absolute(text: str, repository: str, version: str) -> str:
    """A README whose links lead to the files of a version, and pictures to their bytes."""

    def target(match: re.Match[str]) -> str:
        path = match.group(1)
        kind = "raw" if path.endswith(".webp") else "blob"
        return f"{repository}/{kind}/v{version}/{path}"

    return _RELATIVE.sub(target, text)


def urls(repository: str, version: str) -> dict[str, str]:
    """The project's URLs."""
    files = f"{repository}/blob/v{version}"
    return {
        "Source": repository,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


class Metadata(MetadataHookInterface):
    """The README and the URLs."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get(REPOSITORY, "").rstrip("/")
        if repository:
            text = absolute(text, repository, metadata["version"])
            metadata["urls"] = urls(repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
