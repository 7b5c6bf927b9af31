"""The command line: `mockbroker serve` and the tools for people who have none of Kafka's at hand.

Each command is imported when it is called: `serve` must not pay for what the others need. Wrong
usage is one line on stderr and exit code 2; a cluster that refuses or cannot be reached, exit code
1.
"""

from __future__ import annotations

from mockbroker.cli.lazy import LazyGroup

main = LazyGroup(
    "mockbroker",
    commands={
        "serve": ("mockbroker.cli.serve:serve", "Serve a Kafka cluster until interrupted."),
        "stop": ("mockbroker.cli.daemon:stop", "End a cluster that runs in the background."),
        "topics": ("mockbroker.cli.topics:topics", "List, describe, create and delete topics."),
        "produce": ("mockbroker.cli.produce:produce", "Send lines of standard input as records."),
        "consume": ("mockbroker.cli.consume:consume", "Print the records of a topic."),
        "groups": ("mockbroker.cli.groups:groups", "List, describe, reset and delete groups."),
        "coordinator": (
            "mockbroker.cli.coordinator:coordinator",
            "Say who coordinates a group, and why.",
        ),
        "show": ("mockbroker.cli.show:show", "Print brokers, partitions, transactions and more."),
        "journal": ("mockbroker.cli.journal:journal", "Print what happened to a cluster."),
        "pipeline": (
            "mockbroker.cli.pipeline:pipeline",
            "Judge and measure what a cluster did, from its journal's tables.",
        ),
        "verify": ("mockbroker.cli.journal:verify", "Say what must have happened; 1 if not."),
        "fault": ("mockbroker.cli.fault:fault", "Break a running cluster by rules."),
        "action": ("mockbroker.cli.steer:action", "Do something to a cluster, by name."),
        "clock": ("mockbroker.cli.steer:clock", "Show the cluster's clock, freeze it, move it."),
        "settle": ("mockbroker.cli.steer:settle", "Wait until a cluster has come to rest."),
        "snapshot": ("mockbroker.cli.steer:snapshot", "Take snapshots, and go back to them."),
        "reset": ("mockbroker.cli.steer:reset", "Let a cluster be as it was at its start."),
        "scenario": ("mockbroker.cli.scenario:scenario", "Play a cluster's day from a file."),
        "simulate": (
            "mockbroker.cli.simulate:simulate",
            "Simulate clusters with clients and faults, each from one number.",
        ),
        "spark-submit": (
            "mockbroker.cli.spark_submit:spark_submit",
            "Run a Spark program on a cluster of its own.",
        ),
        "token": ("mockbroker.cli.token:token", "Sign a token for OAUTHBEARER clients."),
        "codec": ("mockbroker.cli.codec:codec", "Show how messages look on the wire."),
        "decode": ("mockbroker.cli.decode:decode", "Explain bytes of the Kafka protocol."),
    },
    help="A whole Kafka cluster in one process, made for testing, and tools to look into it.",
    version_of="mockbroker",
)
