"""Members share the partitions; a worker restores its state when a partition comes to it."""

import asyncio
import json

import pytest
from shop.billing import Billing
from shop.till import MENU, Till

TOPICS = {"orders": 4, "bills": 4, "bills-snapshots": 4}


async def sell(kafka, numbers):
    till = Till(kafka.bootstrap_servers)
    for number in numbers:
        till.producer.produce(
            "orders", json.dumps({"id": number, "drink": MENU[0][0]}), partition=number % 4
        )
    till.close()


async def share(kafka):
    """One member has all partitions, then two share them, then one is left."""
    first, second = Billing(kafka.bootstrap_servers), Billing(kafka.bootstrap_servers)
    await sell(kafka, range(8))
    await first.start()
    await first.member.drain()
    assert len(first.member.workers) == 4
    await second.start()
    while {len(each.member.workers) for each in (first, second)} != {2}:
        await asyncio.gather(first.member.work(), second.member.work())
    await sell(kafka, range(8, 16))
    await asyncio.gather(first.member.drain(), second.member.drain())
    await first.stop()
    while len(second.member.workers) != 4:
        await second.member.work()
    await sell(kafka, range(16, 24))
    await second.member.drain()
    await second.stop()


@pytest.mark.mock_kafka(brokers=3, topics=TOPICS)
def test_partitions_move_and_their_bills_go_on(mock_kafka):
    mock_kafka.topic("bills").track(key="$.id")
    mock_kafka.topic("bills-snapshots").track(unique_values=True)
    asyncio.run(asyncio.wait_for(share(mock_kafka), 60))
    bills = [json.loads(each.value) for each in mock_kafka.records("bills")]
    assert sorted(bill["id"] for bill in bills) == [*range(24)]
    assert sorted(bill["number"] for bill in bills) == sorted([*range(1, 7)] * 4)
    mock_kafka.audit().assert_no("duplicate", "lost_write", "torn_transaction", "dirty_read")
