"""Share coordinators serve brokers only."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.differential.secured.session import AclSession, case
from tests.support.share_states import (
    delete_request,
    initialize_request,
    read_request,
    summary_request,
    write_request,
)

ID = bytes(15) + b"\x09"


@case
def states_of_share_partitions_are_for_brokers(session: AclSession) -> None:
    requests = (
        (initialize_request(ID, 0, 1), 0),
        (read_request(ID, 0, 1), 0),
        (write_request(ID, {0: [], 1: []}), 1),
        (delete_request(ID, 0, 1), 0),
        (summary_request(ID, 0, 1), 1),
    )
    for request, version in requests:
        session.ask(request, version, label="nothing")
    session.allow(AclOperation.READ, ResourceType.GROUP, "g")
    session.allow(AclOperation.ALTER, ResourceType.CLUSTER)
    for request, version in requests:
        session.ask(request, version, label="the group, and alter")
    key = "g:AAAAAAAAAAAAAAAAAAAACQ:0"
    session.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
    session.allow(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
    find = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    session.without_error(find, 6, lambda answer: answer.coordinators[0].error_code)
