"""The Spark job: a batch may run twice, and some bills do not count."""

import json

import pytest
from confluent_kafka import Producer
from shop.mistakes import AddsAgain
from shop.sales import Table, bills, start

from mockbroker_fixtures import Crash, assert_exactly_once

pytestmark = [
    pytest.mark.spark,
    pytest.mark.mock_kafka(brokers=1, topics={"bills": 1}),
]


def bill(number):
    return json.dumps({"id": number, "drink": "tea", "cents": 280, "number": number + 1})


def write(kafka, numbers, counts):
    """Write bills in a transaction, which may be aborted."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "billing-0"}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in numbers:
        producer.produce("bills", bill(number))
    assert producer.flush(30) == 0
    if counts:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


@pytest.mark.parametrize(("make", "twice"), [(Table, False), (AddsAgain, True)])
def test_a_batch_runs_again_after_a_crash(
    spark, spark_kafka, checkpoint_dir, tmp_path, make, twice
):
    write(spark_kafka, range(3), counts=True)
    table = make(tmp_path / "sales.db")
    stream = bills(spark, spark_kafka.options("bills"))
    crash = Crash(batch=0, when="before_commit")
    crash.wait(start(stream, crash.around(table.write), checkpoint_dir))
    start(stream, table.write, checkpoint_dir).awaitTermination()
    if twice:
        with pytest.raises(AssertionError, match="3 more than once"):
            assert_exactly_once(range(3), table.ids(), lambda number: number)
    else:
        assert_exactly_once(range(3), table.ids(), lambda number: number)
        assert table.totals() == {"tea": 3 * 280}


@pytest.mark.parametrize(
    ("isolation", "found"), [("read_committed", [0, 1, 2]), ("read_uncommitted", [0, 1, 2, 2])]
)
def test_a_bill_of_an_aborted_transaction_does_not_count(
    spark, spark_kafka, checkpoint_dir, tmp_path, isolation, found
):
    write(spark_kafka, [0, 1], counts=True)
    write(spark_kafka, [2], counts=False)
    write(spark_kafka, [2], counts=True)
    table = Table(tmp_path / "sales.db")
    stream = bills(spark, spark_kafka.options("bills"), isolation)
    start(stream, table.write, checkpoint_dir).awaitTermination()
    assert table.ids() == found
