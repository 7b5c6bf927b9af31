"""Take the screenshots of the console that README and the page on the console show.

    python docs/screenshots/console.py

It needs `chromium`, playwright, the extra `pipeline`, confluent-kafka and Pillow. The story is
fixed: the pages always tell the same, times and ids differ.
"""

from __future__ import annotations

import io
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from mockbroker import Cluster, TopicSpec

HERE = Path(__file__).parent
KILOBYTES_MAX = 80
TIMEOUT_S = 30


class Picture(NamedTuple):
    """A page, what has to be there before it is taken, and how it is taken, in CSS pixels."""

    name: str
    place: str
    shows: str
    width: int = 1_400
    height: int = 850
    scheme: str = "light"
    click: str = ""


PICTURES = (
    Picture("attention-light", "cluster", "Waiting: kitchen", height=1_000),
    Picture(
        "timeline-dark", "timeline?seq={held}", "not answered yet", scheme="dark", click="bytes"
    ),
    Picture("transaction-light", "transactions/nightly-import", "Ongoing", height=720),
    Picture("group-light", "groups/kitchen", "an open transaction holds it", height=1_000),
    Picture("held-dark", "faults/held", "topic_data[0].name", scheme="dark"),
    Picture("audit-light", "audit", "lost write", height=640, click="audit"),
    Picture("narrow-dark", "cluster", "Waiting: kitchen", 400, 850, "dark"),
)


def settings(kafka: Cluster, client_id: str, **more: object) -> dict[str, object]:
    named = {name.replace("_", "."): value for name, value in more.items()}
    servers = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": client_id}
    return {**servers, "log_level": 0, **named}


@contextmanager
def reading(kafka: Cluster, group: str, client_id: str, topic: str) -> Iterator[list[str]]:
    """A consumer that commits what it reads, in a thread of its own."""
    stopped = threading.Event()
    config = settings(
        kafka,
        client_id,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    consumer = Consumer(config)
    consumer.subscribe([topic])
    values: list[str] = []

    def read() -> None:
        while not stopped.is_set():
            message = consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            values.append((message.value() or b"").decode())
            try:
                consumer.commit(message, asynchronous=False)
            except KafkaException:
                continue  # a rebalance

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield values
    stopped.set()
    thread.join()
    consumer.close()


def write(
    kafka: Cluster, client_id: str, topic: str, first: int, last: int, **more: object
) -> None:
    producer = Producer(settings(kafka, client_id, linger_ms=0, **more))
    for number in range(first, last + 1):
        producer.produce(topic, f"coffee {number}", headers={"mb-id": f"{client_id}-{number}"})
        producer.flush(TIMEOUT_S)


@contextmanager
def story() -> Iterator[Cluster]:
    """A lost write, a transaction that nobody ends, and a Produce that is held."""
    topics = [TopicSpec("orders", 4, replication_factor=3), TopicSpec("jobs", 1)]
    with ExitStack() as stack:
        kafka = stack.enter_context(Cluster(topics=topics, seed=1, racks=["a", "b", "c"]))
        kafka.topic("payments").create(assignments={0: [1, 2]})
        kafka.partition("payments", 0).lag_follower(2)
        write(kafka, "till", "payments", 1, 1, acks=1)
        kafka.partition("payments", 0).elect_unclean(2)
        kafka.faults.add(
            name="slow-kitchen", match={"api": "Fetch", "group": "kitchen"}, do={"delay": "200ms"}
        )
        kafka.faults.add(name="refused", match={"api": "Produce"}, when={"nth": 9}, do={"error": 6})
        cook = stack.enter_context(reading(kafka, "kitchen", "cook-1", "orders"))
        write(kafka, "shop", "orders", 1, 20)
        stack.enter_context(reading(kafka, "kitchen", "cook-2", "orders"))
        importer = Producer(
            settings(
                kafka,
                "importer",
                transactional_id="nightly-import",
                transaction_timeout_ms=600_000,
            )
        )
        importer.init_transactions(TIMEOUT_S)
        importer.begin_transaction()
        importer.produce("orders", "imported", partition=0)
        importer.flush(TIMEOUT_S)
        write(kafka, "shop", "orders", 21, 40)
        kafka.faults.add(
            name="breakpoint", match={"api": "Produce"}, when={"times": 1}, do={"hold": {}}
        )
        held = Producer(settings(kafka, "shop", linger_ms=0))
        held.produce("orders", "one coffee", partition=1)
        waiting = threading.Thread(target=held.flush, args=(120,), daemon=True)
        waiting.start()
        kafka.faults.wait_held(timeout_s=TIMEOUT_S)
        assert cook
        yield kafka
        for exchange in kafka.faults.held():
            exchange.release()
        kafka.transaction("nightly-import").abort()


def prepare(page: Page, what: str) -> None:
    """What is clicked before a picture is taken."""
    if what == "audit":
        page.get_by_role("button", name="Run the audit").first.click()
    elif what == "bytes":
        field = page.get_by_role("tree", name="Fields").get_by_text("'shop'")
        field.scroll_into_view_if_needed()
        field.hover()


def take(browser: Browser, kafka: Cluster, picture: Picture) -> None:
    """One screenshot, as WebP without loss."""
    held = kafka.journal.events(kind="request", api="Produce")[-1].seq
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(f"{kafka.admin_url}/#/{picture.place.format(held=held)}")
    prepare(page, picture.click)
    page.locator("main").get_by_text(picture.shows).first.wait_for()
    page.locator(".skeleton").first.wait_for(state="detached")
    shot = page.screenshot()
    context.close()
    path = HERE / f"console-{picture.name}.webp"
    with Image.open(io.BytesIO(shot)) as image:
        image.save(path, lossless=True, method=6)
    size = path.stat().st_size
    print(f"{path.name}: {size / 1000:.0f} kB")
    if size > KILOBYTES_MAX * 1_000:
        sys.exit(f"{path.name} has more than {KILOBYTES_MAX} kB")


def main() -> None:
    chromium = shutil.which("chromium") or sys.exit("chromium is not installed")
    with (
        story() as kafka,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
    ):
        for picture in PICTURES:
            take(browser, kafka, picture)


if __name__ == "__main__":
    main()
