"""The kitchen: a consumer of aiokafka. It makes a dish for each bill, at least once.

It commits a bill after its dish. If it fails in between, the dish is made again.
"""

from aiokafka import AIOKafkaProducer

from shop.member import Member


class Stove:
    """The worker of one partition."""

    COMMIT_EVERY = 10

    def __init__(self, kitchen, partition):
        self.kitchen = kitchen
        self.partition = partition
        self.uncommitted = 0
        self.next = 0

    async def start(self):
        self.next = await self.kitchen.member.consumer.committed(self.partition) or 0

    async def take(self, bill):
        await self.cook(bill)
        self.next = bill.offset + 1
        self.uncommitted += 1
        if self.uncommitted >= self.COMMIT_EVERY:
            await self.commit()

    async def cook(self, bill):
        await self.kitchen.producer.send_and_wait("dishes", bill.value, key=bill.key)

    async def commit(self):
        if self.uncommitted:
            await self.kitchen.member.consumer.commit({self.partition: self.next})
            self.uncommitted = 0

    async def stop(self):
        await self.commit()


class Kitchen:
    def __init__(self, bootstrap, stove=Stove, member=Member, **settings):
        self.bootstrap = bootstrap
        self.producer = None
        self.member = member(
            bootstrap, "kitchen", "bills", lambda partition: stove(self, partition), **settings
        )

    async def start(self):
        self.producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, enable_idempotence=True)
        await self.producer.start()
        await self.member.start()

    async def drain(self):
        await self.member.drain()

    async def stop(self):
        try:
            await self.member.stop()
        finally:
            await self.producer.stop()
