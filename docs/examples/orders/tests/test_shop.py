"""What the programs do when nothing goes wrong. These tests need no more than a broker."""

import asyncio
import json

import pytest
from confluent_kafka import Consumer, TopicPartition
from shop.billing import Billing
from shop.kitchen import Kitchen
from shop.till import MENU, Till

TOPICS = {"orders": 4, "bills": 4, "bills-snapshots": 4, "dishes": 1}

pytestmark = pytest.mark.mock_kafka(brokers=1, topics=TOPICS)


def sell(kafka, count):
    till = Till(kafka.bootstrap_servers)
    for number in range(count):
        till.sell(number, *MENU[number % len(MENU)])
    till.close()


def read(kafka, topic, count):
    """So many records that count, of all partitions."""
    settings = {"group.id": "nobody", "fetch.wait.max.ms": 10}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    consumer.assign([TopicPartition(topic, each, 0) for each in range(TOPICS[topic])])
    found = consumer.consume(count, 30)
    consumer.close()
    return found


def run(program):
    async def main():
        await program.start()
        try:
            await asyncio.wait_for(program.drain(), 30)
        finally:
            await program.stop()

    asyncio.run(main())


@pytest.mark.parametrize("count", [1, 10, 100])
def test_the_till_sends_each_order(mock_kafka, count):
    sell(mock_kafka, count)
    found = read(mock_kafka, "orders", count)
    assert sorted(json.loads(each.value())["id"] for each in found) == [*range(count)]


def test_orders_of_one_drink_stay_in_order(mock_kafka):
    sell(mock_kafka, 12)
    coffees = [each for each in read(mock_kafka, "orders", 12) if each.key() == b"coffee"]
    assert [json.loads(each.value())["id"] for each in coffees] == [0, 3, 6, 9]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_order_has_one_bill(mock_kafka, count):
    sell(mock_kafka, count)
    run(Billing(mock_kafka.bootstrap_servers))
    found = [json.loads(each.value()) for each in read(mock_kafka, "bills", count)]
    assert sorted(bill["id"] for bill in found) == [*range(count)]


def test_bills_of_a_partition_are_numbered_also_by_the_next_instance(mock_kafka):
    for _ in range(2):
        sell(mock_kafka, 3)
        run(Billing(mock_kafka.bootstrap_servers))
    numbers = {}
    for bill in read(mock_kafka, "bills", 6):
        numbers.setdefault(bill.partition(), []).append(json.loads(bill.value())["number"])
    assert all(found == [*range(1, len(found) + 1)] for found in numbers.values())
    assert sum(map(len, numbers.values())) == 6


@pytest.mark.parametrize("count", [1, 5])
def test_the_kitchen_makes_a_dish_for_each_bill(mock_kafka, count):
    sell(mock_kafka, count)
    run(Billing(mock_kafka.bootstrap_servers))
    run(Kitchen(mock_kafka.bootstrap_servers))
    assert len(read(mock_kafka, "dishes", count)) == count
