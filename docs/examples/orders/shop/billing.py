"""Billing: each order has one bill, and the bills of a partition have consecutive numbers.

The state of a worker is the number of its last bill. Each transaction holds a bill, and a snapshot
of the state with the position in the orders. So all three agree, wherever the program ends.

A worker that gets a partition first starts its producer. That fences whoever had the partition
before, and waits until his last transaction has ended. Only then it reads the last snapshot.
"""

import json

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from shop.member import Member


class Ledger:
    """The worker of one partition."""

    def __init__(self, billing, partition):
        self.billing = billing
        self.partition = partition
        self.snapshots = TopicPartition("bills-snapshots", partition.partition)
        self.number, self.next = 0, 0
        self.producer = AIOKafkaProducer(
            transactional_id=self.transactional_id(), **billing.settings()
        )

    def transactional_id(self):
        """One for each partition: its next owner fences this one."""
        return f"billing-{self.partition.partition}"

    async def start(self):
        await self.fence()
        await self.restore()

    async def fence(self):
        await self.producer.start()

    async def restore(self):
        snapshot = await self.last_snapshot()
        self.number, self.next = snapshot["number"], snapshot["next"]

    async def last_snapshot(self):
        """The last record that counts. Behind it there are markers, and aborted records."""
        where = self.snapshots
        async with AIOKafkaConsumer(
            isolation_level="read_committed", fetch_max_wait_ms=50, **self.billing.settings()
        ) as reader:
            reader.assign([where])
            start = (await reader.beginning_offsets([where]))[where]
            end = (await reader.end_offsets([where]))[where]
            position = end
            while position > start:
                position = max(start, 2 * position - end - 2)  # two back, then six, fourteen, …
                reader.seek(where, position)
                found = []
                while await reader.position(where) < end:
                    found += (await reader.getmany(timeout_ms=100)).get(where, [])
                if found:
                    return json.loads(found[-1].value)
        return {"number": 0, "next": 0}

    async def take(self, order):
        number, behind = self.number + 1, order.offset + 1
        async with self.producer.transaction():
            await self.send("bills", json.loads(order.value) | {"number": number})
            await self.send("bills-snapshots", {"number": number, "next": behind})
        self.number, self.next = number, behind

    async def send(self, topic, value):
        partition = self.partition.partition
        await self.producer.send_and_wait(
            topic, json.dumps(value).encode(), key=b"%d" % partition, partition=partition
        )

    async def stop(self):
        await self.producer.stop()


class Billing:
    def __init__(self, bootstrap, ledger=Ledger, member=Member, **settings):
        self.bootstrap = bootstrap
        self.member = member(
            bootstrap, "billing", "orders", lambda partition: ledger(self, partition), **settings
        )

    def settings(self):
        return {"bootstrap_servers": self.bootstrap, "retry_backoff_ms": 50}

    async def start(self):
        await self.member.start()

    async def drain(self):
        await self.member.drain()

    async def stop(self):
        await self.member.stop()
