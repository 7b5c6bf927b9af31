"""A member of a consumer group, with a worker for each partition that it has.

This is the part that programs get wrong most often. Three rules:

- A rebalance waits until the record in hand is done. A lock sees to it.
- A worker knows the offset that it does next. It begins there when it gets its partition; records
  that were read before that are dropped.
- What fails in a callback of the group fails the program. aiokafka would only log it.
"""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener


class Member(ConsumerRebalanceListener):
    """Reads `topic` as a member of `group`. `make_worker(partition)` returns a worker:

    - `await start()` finds out where to begin, and sets `next` to that offset;
    - `await take(record)` does the work for one record, and raises `next`;
    - `await stop()` ends it; the partition may get another owner then.
    """

    RECORDS_AT_ONCE = 1

    SETTINGS = {
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",  # rather a record twice than never
        "isolation_level": "read_committed",
        "heartbeat_interval_ms": 200,  # a rebalance is soon noticed
        "retry_backoff_ms": 50,
        "fetch_max_wait_ms": 50,
    }

    def __init__(self, bootstrap, group, topic, make_worker, **settings):
        self.topic = topic
        self.make_worker = make_worker
        self.workers = {}
        self.busy = asyncio.Lock()
        self.rebalances = 0
        self.failure = None
        self.settings = self.SETTINGS | {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            **settings,
        }
        self.consumer = None

    async def start(self):
        self.consumer = AIOKafkaConsumer(**self.settings)
        await self.consumer.start()
        self.consumer.subscribe([self.topic], listener=self)

    async def stop(self):
        """Leave the group. What is done is committed, also when the program fails."""
        try:
            async with self.busy:
                await self.stop_workers(list(self.workers))
        finally:
            await self.consumer.stop()

    async def drain(self):
        """Work until all is done that is in our partitions."""
        while not await self.is_at_end():
            await self.work()

    async def is_at_end(self):
        partitions = list(self.workers)
        if not partitions:
            return False  # not yet a member
        ends = await self.consumer.end_offsets(partitions)
        positions = [await self.consumer.position(each) for each in partitions]
        return all(ends[each] <= at for each, at in zip(partitions, positions, strict=True))

    async def work(self):
        """Take the next records, if there are any. Raises what the workers raise."""
        rebalances = self.rebalances
        found = await self.consumer.getmany(timeout_ms=100, max_records=self.RECORDS_AT_ONCE)
        async with self.busy:
            if self.failure is not None:
                raise self.failure
            for partition, records in found.items():
                if partition not in self.workers:
                    continue
                if rebalances != self.rebalances:  # maybe read before the worker began
                    self.consumer.seek(partition, self.workers[partition].next)
                    continue
                for record in records:
                    await self.workers[partition].take(record)

    # -- called by aiokafka in a rebalance ---------------------------------------------------------

    async def on_partitions_revoked(self, revoked):
        async with self.busy:
            await self.tried(self.stop_workers(revoked))

    async def on_partitions_assigned(self, assigned):
        async with self.busy:
            await self.tried(self.start_workers(assigned))

    # ----------------------------------------------------------------------------------------------

    async def start_workers(self, partitions):
        for partition in sorted(partitions):
            worker = self.make_worker(partition)
            await worker.start()
            self.consumer.seek(partition, worker.next)
            self.workers[partition] = worker
        self.rebalances += 1  # aiokafka goes on reading meanwhile, at offsets of its own

    async def stop_workers(self, partitions):
        for partition in sorted(partitions):
            if partition in self.workers:
                await self.workers.pop(partition).stop()

    async def tried(self, work):
        try:
            await work
        except Exception as failure:
            self.failure = failure
