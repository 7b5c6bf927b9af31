"""Take the screenshots of the report page that the page on the audit shows.

    python docs/screenshots/report.py

It needs `chromium`, the extra `pipeline`, confluent-kafka and Pillow. The story is fixed: the
findings are always the same, times and ids differ.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer
from PIL import Image

from mockbroker import Cluster, TopicSpec

HERE = Path(__file__).parent
KILOBYTES_MAX = 80
# Name, place on the page, width, height and colour scheme of each picture, in CSS pixels.
PICTURES = (
    ("findings-light", "", 1_400, 1_050, "light"),
    ("charts-dark", "lag", 1_400, 1_050, "dark"),
    ("narrow-light", "", 400, 1_050, "light"),
    ("narrow-dark", "lag", 400, 1_050, "dark"),
)


def story(report: Path) -> None:
    """A lost acknowledgement, a slow kitchen, and an election that loses a record."""
    orders = TopicSpec("orders", partitions=2, replication_factor=3)
    with Cluster(brokers=3, topics=[orders], seed=1) as kafka:
        # A partition on two brokers, the leader first.
        kafka.topic("payments").create(assignments={0: [1, 2]})
        kafka.faults.drop_reply(
            api="Produce", topic="orders", nth=12, then="reset", name="lost-ack"
        )
        kafka.faults.delay("400ms", api="Fetch", nth=[20, 21, 22], name="slow-fetch")
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        kitchen = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "kitchen",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        kitchen.subscribe(["orders"])
        for number in range(40):
            headers = {"mb-id": f"order-{number}"}
            producer.produce("orders", f"coffee {number}", partition=number % 2, headers=headers)
            producer.flush(30)
            time.sleep(0.05)
            if number % 3 == 2:
                message = kitchen.poll(30)
                assert message is not None
                kitchen.commit(message, asynchronous=False)
        for _ in range(28):  # of 40 and a duplicate, 13 are read
            message = kitchen.poll(30)
            assert message is not None
            kitchen.commit(message, asynchronous=False)
        kitchen.close()
        lose_a_payment(kafka)
        kafka.audit().save(report)


def lose_a_payment(kafka: Cluster) -> None:
    """The leader alone has acknowledged it; the next leader has never had it."""
    leader_only = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "acks": 1, "log_level": 0}
    )
    payments = kafka.partition("payments", 0)
    payments.lag_follower(2)
    leader_only.produce("payments", "ten euros", partition=0, headers={"mb-id": "payment-1"})
    assert leader_only.flush(30) == 0
    payments.elect_unclean(2)


def take(page: Path, place: str, picture: Path, width: int, height: int, scheme: str) -> None:
    """One screenshot, as WebP without loss."""
    chromium = shutil.which("chromium") or sys.exit("chromium is not installed")
    # A window of Chromium is at least 500 pixels wide: a frame is as narrow as it must be.
    frame = page.with_name(f"{picture.stem}.html")
    frame.write_text(
        '<body style="margin:0;overflow:hidden">'
        f'<iframe src="{page.name}#{place}" style="border:0" width="{width}" height="{height}">'
    )
    shot = page.with_name(f"{picture.stem}.png")
    command = [chromium, "--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
    command += [f"--user-data-dir={page.parent / 'profile'}", f"--screenshot={shot}"]
    command += [f"--window-size={max(width, 500)},{height}", "--force-device-scale-factor=1"]
    if scheme == "dark":
        command.append("--blink-settings=preferredColorScheme=0")
    subprocess.run([*command, frame.as_uri()], check=True, capture_output=True, timeout=300)
    with Image.open(shot) as image:
        image.crop((0, 0, width, height)).save(picture, lossless=True, method=6)
    size = picture.stat().st_size
    print(f"{picture.name}: {size / 1000:.0f} kB")
    if size > KILOBYTES_MAX * 1_000:
        sys.exit(f"{picture.name} has more than {KILOBYTES_MAX} kB")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "report.html"
        story(page)
        for name, place, width, height, scheme in PICTURES:
            take(page, place, HERE / f"report-{name}.webp", width, height, scheme)


if __name__ == "__main__":
    main()
