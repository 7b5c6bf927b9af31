"""A worker that was believed dead goes on beside its heir. The audit looks for doubled bills."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced
from shop.billing import Billing, Ledger
from shop.mistakes import NewName, RestoresFirst

pytestmark = pytest.mark.mock_kafka(brokers=1, topics={"bills": 1, "bills-snapshots": 1})

ORDERS = [SimpleNamespace(offset=n, value=json.dumps({"id": n})) for n in range(3)]


async def take_over(kafka, ledger):
    """A zombie bills the first two orders. Its heir begins meanwhile, and bills the others."""
    billing = Billing(kafka.bootstrap_servers)
    zombie = ledger(billing, TopicPartition("orders", 0))
    await zombie.start()
    await zombie.take(ORDERS[0])

    class Heir(ledger):
        async def fence(self):
            await zombie.take(ORDERS[1])  # before the heir has said a word
            await super().fence()

    heir = Heir(billing, TopicPartition("orders", 0))
    await heir.start()
    try:
        await zombie.take(ORDERS[2])
    except ProducerFenced:
        fenced = True
    else:
        fenced = False
    for order in ORDERS[heir.next :]:
        await heir.take(order)
    await zombie.stop()
    await heir.stop()
    return fenced


@pytest.mark.parametrize(
    ("ledger", "fences", "doubled"),
    [(Ledger, True, []), (NewName, False, ["id:2"]), (RestoresFirst, True, ["id:1"])],
)
def test_the_audit_finds_each_bill_that_was_written_twice(mock_kafka, ledger, fences, doubled):
    mock_kafka.topic("bills").track(key="$.id")
    assert asyncio.run(take_over(mock_kafka, ledger)) == fences
    audit = mock_kafka.audit()
    audit.assert_no("lost_write", "torn_transaction")
    assert [each.subject for each in audit.of("duplicate") if each.topic == "bills"] == doubled
