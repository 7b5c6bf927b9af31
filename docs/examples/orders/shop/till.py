"""The till: a producer of confluent-kafka. It sends each order once."""

import json

from confluent_kafka import KafkaException, Producer


class Till:
    """Sends orders. An order is an id, a drink and a price in cents."""

    SETTINGS = {"enable.idempotence": True}  # a retry is recognised by the broker

    def __init__(self, bootstrap):
        self.failed = []
        settings = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "linger.ms": 0,
            "enable.sparse.connections": False,  # or the first record waits for a second
        }
        self.producer = Producer(settings | self.SETTINGS)

    def sell(self, number, drink, cents):
        order = json.dumps({"id": number, "drink": drink, "cents": cents})
        self.producer.produce("orders", order, key=drink, on_delivery=self.reported)

    def reported(self, error, _message):
        if error is not None:
            self.failed.append(error)

    def close(self):
        """Wait until every order is stored. Raises KafkaException if one is not."""
        if self.producer.flush(30):
            raise TimeoutError("orders are still on their way")
        if self.failed:
            raise KafkaException(self.failed[0])


MENU = [("coffee", 320), ("tea", 280), ("cake", 450)]


def run(bootstrap, make=Till, count=3):
    till = make(bootstrap)
    for number in range(count):
        till.sell(number, *MENU[number % len(MENU)])
    till.close()
