"""Each line with a mark is an error for mypy and for pyright."""

from __future__ import annotations

from mockbroker import Cluster


def wrong(kafka: Cluster) -> None:
    kafka.faults.add(match={"apii": 3}, do={"drop_reply": {}})  # wrong
    kafka.faults.add(match={"api": "Produce"}, do={"drop_replies": {}})  # wrong
    kafka.faults.add({"rules": [{"match": {"topik": "x"}, "do": {"observe": {}}}]})  # wrong
    kafka.faults.drop_reply(apii="Produce")  # wrong
    kafka.faults.drop_reply("later")  # wrong
    kafka.faults.delay(by=1.5)  # wrong
    kafka.broker("one").stop()  # wrong
    kafka.broker(1).stop(how="brutal")  # wrong
    kafka.topic("orders").produce(3)  # wrong
    kafka.journal.wait(kind=3)  # wrong
    kafka.journal.exactly(1, topik="orders")  # wrong
    kafka.journal.in_order({"kin": "append"})  # wrong
    kafka.expect_record("orders", 1)  # wrong
    kafka.expect_records("orders", [{"valeu": "tea"}])  # wrong
    kafka.expect_records("orders", [{"value": 3}])  # wrong
    kafka.expect_records("orders", b"tea")  # wrong
    kafka.clock.advance(1.5)  # wrong
    Cluster(broker=3)  # wrong
    kafka.renew(broker=3)  # wrong
    kafka.renew(same_ports="yes")  # wrong
