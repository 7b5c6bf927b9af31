"""Pictures of a live cluster, as text: logs, lag, transactions, groups, sequences of requests."""

from confluent_kafka.admin import AdminClient

TRANSACTION = ["InitProducerId", "AddPartitionsToTxn", "Produce", "AddOffsetsToTxn"]
TRANSACTION += ["TxnOffsetCommit", "EndTxn"]


def log(kafka, topic, partition=0, first=0, group=None, **marks):
    """The offsets of a log from `first` on, and what points at them.

    `marks` are further offsets by name, such as a consumer's `position`. With `group` its committed
    offset is drawn, and the lag from there.
    """
    view = kafka.partitions(topic)[partition]
    cell = len(str(view.log_end_offset)) + 1
    rows = {"log start": view.log_start_offset, **marks}
    bars = {}
    if group is not None:
        [lag] = [each for each in kafka.lags() if each.group == group and each.topic == topic]
        rows["committed"] = lag.committed
        bars["lag"] = (lag.committed, view.high_watermark)
        if view.last_stable_offset != view.high_watermark:
            bars["read_committed lag"] = (lag.committed, view.last_stable_offset)
    rows["last stable offset"] = view.last_stable_offset
    rows["high watermark"] = view.high_watermark
    rows["log end"] = view.log_end_offset
    offsets = range(first, view.log_end_offset + 1)
    lines = [("offset", "".join(f"{each:>{cell}}" for each in offsets))]
    for name, at in rows.items():
        if at >= first:
            lines.append((name.replace("_", " "), " " * (cell * (at - first + 1) - 1) + "^"))
    for name, (start, end) in bars.items():
        before = cell * (max(start, first) - first + 1) - 1
        length = cell * (end - max(start, first))
        lines.append((name, " " * before + "|" + "-" * (length - 1) + f"> {end - start}"))
    return table(lines)


def transactions(kafka, *topics):
    """What each offset of the topics holds: a record, or the marker that ends a transaction."""
    marks = {True: "COMMIT", False: "ABORT"}
    lines = []
    for topic in topics:
        found = {each.offset: each.value.decode() for each in kafka.records(topic)}
        for marker in kafka.journal.events(kind="marker", topic=topic):
            found[marker.offset] = marks[marker.message["committed"]]
        lines.append((topic, "  ".join(f"{at}:{found[at]}" for at in sorted(found))))
    return table(lines)


def groups(kafka, topic, *names):
    """Which broker leads each partition, and which member of each group reads it."""
    views = kafka.partitions(topic)
    leaders = sorted({each.leader_id for each in views})
    lines = [
        (topic, f"broker {node}", [each.partition for each in views if each.leader_id == node])
        for node in leaders
    ]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for name in names:
        group = admin.describe_consumer_groups([name])[name].result(30)
        shares = sorted(
            [each.partition for each in member.assignment.topic_partitions]
            for member in group.members
        )
        shares.sort(key=lambda share: (not share, share))
        lines += [
            (f"group {name}", f"member {number}", share) for number, share in enumerate(shares, 1)
        ]
    return table(
        (name, who, " ".join(map(str, partitions)) or "nothing") for name, who, partitions in lines
    )


def sequence(kafka, client_id):
    """The requests of a transaction, with the states of its transactional id."""
    lines = []
    for event in kafka.journal.events():
        if event.kind == "request" and event.client_id == client_id and event.api in TRANSACTION:
            lines.append(f"{client_id} --{event.api}--> broker")
        elif event.kind == "transaction":
            lines.append(f"{'':{len(client_id)}}   state {event.state}")
        elif event.kind == "marker":
            end = "COMMIT" if event.message["committed"] else "ABORT"
            lines.append(
                f"{'':{len(client_id)}}   broker --{end}--> {event.topic}-{event.partition}"
            )
    return "\n".join(lines)


def table(rows):
    rows = [tuple(row) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join(
            [*(f"{text:<{width}}" for text, width in zip(row, widths, strict=False)), row[-1]]
        )
        for row in rows
    )
