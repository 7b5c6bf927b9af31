"""The same programs with one mistake each. A comment says how it looks in real code."""

import uuid

from shop.billing import Ledger
from shop.kitchen import Kitchen, Stove
from shop.member import Member
from shop.sales import Table
from shop.till import Till


class NotIdempotent(Till):
    """A lost acknowledgement makes a second record. (It is librdkafka's default.)"""

    SETTINGS = {"enable.idempotence": False}


class CommitsFirst(Stove):
    """The commit comes before the work. A failure in between loses the dish."""

    async def take(self, bill):
        self.next = bill.offset + 1
        self.uncommitted += 1
        await self.commit()
        await self.cook(bill)


class CommitsByTimer(Stove):
    """`enable_auto_commit` commits what was read, done or not. (It is the default.)"""

    async def commit(self):
        pass


class Forgetful(Stove):
    """A rebalance comes between two commits, and nobody commits before it."""

    async def stop(self):
        pass


class WholeBatch(Member):
    """A batch takes longer than `max_poll_interval_ms`: the consumer leaves its group."""

    RECORDS_AT_ONCE = None


class NewName(Ledger):
    """A transactional id that is new each time fences nobody: a zombie goes on and is believed."""

    def transactional_id(self):
        return f"billing-{uuid.uuid4()}"


class RestoresFirst(Ledger):
    """The former owner may go on between the restore and the fencing."""

    async def start(self):
        await self.restore()
        await self.fence()


class AddsAgain(Table):
    """A batch that Spark runs again is added again."""

    def has(self, batch):
        return False


def kitchen(**options):
    return lambda bootstrap, **settings: Kitchen(bootstrap, **options, **settings)


MISTAKES = {
    "not-idempotent": NotIdempotent,
    "commits-first": kitchen(stove=CommitsFirst),
    "auto-commit": kitchen(stove=CommitsByTimer, enable_auto_commit=True),
    "forgetful": kitchen(stove=Forgetful),
    "whole-batch": kitchen(member=WholeBatch),
    "latest": kitchen(auto_offset_reset="latest"),  # the default, too
    "uncommitted": kitchen(isolation_level="read_uncommitted"),  # and this
}
