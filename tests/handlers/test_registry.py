"""The registry of handlers: filled by importing the modules that are named after APIs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from mockbroker import handlers
from mockbroker.core.metadata.profiles import LATEST, profile_of
from mockbroker.handlers import load_all
from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import APIS, RequestContext, api
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


def test_a_handler_stands_in_the_module_that_is_named_after_its_api():
    """Or it would not be found: to import the other modules adds none."""
    found = set(APIS)
    for module in iter_modules(handlers.__path__):
        import_module(f"{handlers.__name__}.{module.name}")
    assert set(APIS) == found
    for key in found:
        name = ApiKey(key).name.lower()
        assert callable(getattr(import_module(f"{handlers.__name__}.{name}"), name))


TOY = """
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import named, on_group, required
from mockbroker.handlers.base import api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse


@api(
    ApiKey.SHARE_GROUP_HEARTBEAT,
    versions=(1, 1),
    authorize=required(named(on_group(AclOperation.READ), "group_id")),
    forwarded=True,
)
def share_group_heartbeat(ctx, request):
    return ShareGroupHeartbeatResponse(member_id=f"{request.group_id} at {ctx.broker.node_id}")
"""

PROGRAM = """
import sys
from mockbroker import handlers
handlers.__path__.insert(0, sys.argv[1])
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import APIS, Parked
from mockbroker.handlers.error_responses import failure_response
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.ask import ask, context
from tests.support.requests import Node

key, request = ApiKey.SHARE_GROUP_HEARTBEAT, ShareGroupHeartbeatRequest(group_id="toys")
node = Node()
told = ask(node, ApiKey.API_VERSIONS, ApiVersionsRequest("toy", "1"))
assert (1, 1) in [(a.min_version, a.max_version) for a in told.api_keys if a.api_key == key]
assert ask(node, key, request).member_id == "toys at 1"

failed = failure_response(key, 1, request, KeyError())
assert (failed.error_code, failed.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, None), failed

configs = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:a"}
strict = Node(configs=configs)
assert ask(strict, key, request).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

node.cluster.publisher.freeze([node.cluster.brokers[1]])
waiting = APIS[key].handle(context(node, key, 1), request)
assert isinstance(waiting, Parked) and not waiting.done
node.advance(60_000)
assert waiting.response.error_code == ErrorCode.REQUEST_TIMED_OUT
"""


def test_a_new_api_costs_a_declaration_and_a_handler(tmp_path: Path):
    """A handler that nothing else knows of is advertised, asks, refuses and is forwarded. It stands
    in for that of an API which is served.
    """
    (tmp_path / "share_group_heartbeat.py").write_text(TOY, "utf-8")
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=True)


def test_an_api_has_one_handler():
    with pytest.raises(ValueError, match="METADATA"):

        @api(ApiKey.METADATA, versions=(0, 1), authorize=everyone("a test"))
        def another(ctx: RequestContext, request: object) -> object:
            raise AssertionError
