"""The environment of a pytest that a test starts to look at the tests' own tools."""

from __future__ import annotations


def only(*plugins: str) -> dict[str, str]:
    """These plugins and no other that is installed: to import them all takes most of its time."""
    return {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": ",".join(["xdist.plugin", *plugins]),
    }
