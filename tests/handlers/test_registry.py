"""The registry of handlers: filled from declarations, modules imported by their first request."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mockbroker.core.profiles import LATEST, profile_of
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS, LazyApi, RequestContext, api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import schema_module

load_all()


@pytest.mark.parametrize("key", sorted(APIS))
def test_a_handler_serves_no_version_that_the_newest_release_lacks(key):
    served = APIS[key]
    declared = schema_module(ApiKey(key).name.lower()).REQUEST.versions
    assert served.min_version >= declared.low
    assert served.max_version == profile_of(LATEST).max_versions[key]
    if ApiKey(key) is not ApiKey.PRODUCE:
        assert served.advertised_min == served.min_version


def test_reading_the_declarations_finds_what_importing_the_modules_registers():
    program = """
import importlib, pkgutil
from mockbroker import handlers
from mockbroker.handlers.base import APIS
for module in pkgutil.iter_modules(handlers.__path__):
    importlib.import_module(f"mockbroker.handlers.{module.name}")
imported = {k: (a.min_version, a.max_version, a.advertised_min) for k, a in APIS.items()}
APIS.clear()
handlers.load_all()
read = {k: (a.min_version, a.max_version, a.advertised_min) for k, a in APIS.items()}
assert imported == read, set(imported.items()) ^ set(read.items())
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_module_is_imported_by_the_first_request():
    program = """
import sys
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
load_all()
load_all()
assert "mockbroker.handlers.list_config_resources" not in sys.modules
first = APIS[74].handle
from tests.support.ask import ask, nodes
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.list_config_resources import ListConfigResourcesRequest
ask(nodes(1), ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest())
assert APIS[74].handle is not first
assert APIS[74].handle.__module__ == "mockbroker.handlers.list_config_resources"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_api_has_one_handler():
    with pytest.raises(ValueError, match="METADATA"):

        @api(ApiKey.METADATA, versions=(0, 1))
        def another(ctx: RequestContext, request: object) -> object:
            raise AssertionError

    assert isinstance(APIS[int(ApiKey.METADATA)], LazyApi)
