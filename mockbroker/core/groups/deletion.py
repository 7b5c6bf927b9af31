"""DeleteGroups: groups of one shard, with their offsets or their share state.

Kafka does not know the types of the groups. It first has the state of the share groups among them
deleted, and writes that this has begun. The groups whose state is deleted, and all others, are then
deleted together.

Source: GroupCoordinatorService.deleteGroups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.groups.group import SHARE
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker_protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
    )

NONE = ErrorCode.NONE
Errors = Mapping[str, ErrorCode]


def delete_groups(
    shard: GroupShard, group_ids: Sequence[str], then: Callable[[Errors], None]
) -> None:
    """Delete the Empty ones among the groups; `then` gets the error of each, or NONE."""
    deletion = _Deletion(shard, group_ids, then)
    deletion.start()


class _Deletion:
    """One request for the groups of one shard."""

    __slots__ = ("_errors", "_group_ids", "_missing", "_shard", "_then")

    def __init__(
        self, shard: GroupShard, group_ids: Sequence[str], then: Callable[[Errors], None]
    ) -> None:
        self._shard = shard
        self._group_ids = group_ids
        self._then = then
        self._errors: dict[str, ErrorCode] = {}

    def start(self) -> None:
        shard = self._shard
        share_ids = [
            group_id
            for group_id in self._group_ids
            if (group := shard.groups.get(group_id)) is not None and group.group_type == SHARE
        ]
        error = NONE
        requests: list[DeleteShareGroupStateRequest] = []
        if share_ids:
            error = self._begin_share_groups(share_ids, requests)
        shard.when_replicated(partial(self._delete_states, requests), error)

    def _begin_share_groups(
        self, share_ids: Sequence[str], requests: list[DeleteShareGroupStateRequest]
    ) -> ErrorCode:
        """Write that the deletion of share state begins; adds the requests to the persister."""
        from mockbroker.core.groups.share.shard import deletable_partitions
        from mockbroker.core.groups.share.state_requests import delete_request

        shares = self._shard.shares
        groups = shares.all()
        deletable = {}
        for group_id in share_ids:
            group = groups[group_id]
            refused = group.check_delete()
            if refused is not NONE:
                self._errors[group_id] = refused
            elif group.noted is not None:
                which = deletable[group_id] = deletable_partitions(group)
                if which:
                    requests.append(delete_request(group_id, which))
        return shares.begin_deletion(deletable)

    def _delete_states(
        self, requests: Sequence[DeleteShareGroupStateRequest], error: ErrorCode
    ) -> None:
        if error is not NONE:
            self._then(dict.fromkeys(self._group_ids, error))
            return
        from mockbroker.core.share.operations import DELETE

        self._missing = len(requests)
        for request in requests:
            then = partial(self._on_state_deleted, request.group_id)
            self._shard.coordinator.share_persister.send(DELETE, request, then)
        if not requests:
            self._delete_rest()

    def _on_state_deleted(self, group_id: str, response: DeleteShareGroupStateResponse) -> None:
        from mockbroker.core.groups.share.state_requests import first_error

        error = first_error(response)
        if error is not NONE:
            self._errors[group_id] = error
        self._missing -= 1
        if not self._missing:
            self._delete_rest()

    def _delete_rest(self) -> None:
        """Delete the groups that have no error yet."""
        shard, errors = self._shard, self._errors
        rest = [group_id for group_id in self._group_ids if group_id not in errors]
        if shard.unloaded:
            errors.update(dict.fromkeys(rest, ErrorCode.NOT_COORDINATOR))
            self._then(errors)
            return
        refused = {group_id: shard.delete_group(group_id) for group_id in rest}

        def finish(failure: ErrorCode) -> None:
            errors.update((group_id, failure or refused[group_id]) for group_id in rest)
            self._then(errors)

        shard.when_replicated(finish)
