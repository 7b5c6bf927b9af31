"""The command line: `mockbroker serve`, and tools for machines without Kafka's own.

Each command is imported when it is called: `serve` must not pay for the others. Wrong usage is one
line on stderr and exit code 2; a cluster that refuses or cannot be reached, exit code 1.
"""

from __future__ import annotations

from mockbroker.cli.lazy import LazyGroup

main = LazyGroup(
    "mockbroker",
    commands={
        "serve": ("mockbroker.cli.serve:serve", "Run a Kafka cluster until interrupted."),
        "exec": ("mockbroker.cli.execute:execute", "Run a program with a cluster around it."),
        "stop": ("mockbroker.cli.daemon:stop", "Stop a cluster in the background."),
        "topics": ("mockbroker.cli.topics:topics", "List, create, alter and delete topics."),
        "produce": ("mockbroker.cli.produce:produce", "Send lines of standard input as records."),
        "consume": ("mockbroker.cli.consume:consume", "Print the records of a topic."),
        "groups": ("mockbroker.cli.groups:groups", "List, describe, reset and delete groups."),
        "configs": ("mockbroker.cli.configs:configs", "Show and change configs."),
        "coordinator": (
            "mockbroker.cli.coordinator:coordinator",
            "Show the coordinator of a group.",
        ),
        "show": ("mockbroker.cli.show:show", "Print brokers, partitions, transactions and more."),
        "console": (
            "mockbroker.cli.console:console",
            "Look at a saved journal, or at a cluster, in a browser.",
        ),
        "journal": ("mockbroker.cli.journal:journal", "Print a cluster's journal."),
        "pipeline": (
            "mockbroker.cli.pipeline:pipeline",
            "Audit and measure a cluster from its journal's tables.",
        ),
        "verify": ("mockbroker.cli.journal:verify", "Check an expectation against the journal."),
        "fault": ("mockbroker.cli.fault:fault", "Inject faults into a running cluster by rules."),
        "action": ("mockbroker.cli.control:action", "Carry out an action on a cluster."),
        "clock": ("mockbroker.cli.control:clock", "Show, freeze and advance the cluster's clock."),
        "settle": ("mockbroker.cli.control:settle", "Wait until a cluster is at rest."),
        "snapshot": ("mockbroker.cli.control:snapshot", "Take and restore snapshots."),
        "reset": ("mockbroker.cli.control:reset", "Reset a cluster to its start."),
        "scenario": ("mockbroker.cli.scenario:scenario", "Play a scenario from a file."),
        "simulate": (
            "mockbroker.cli.simulate:simulate",
            "Simulate clusters with clients and faults from seeds.",
        ),
        "spark-submit": (
            "mockbroker.cli.spark_submit:spark_submit",
            "Run a Spark program on its own cluster.",
        ),
        "token": ("mockbroker.cli.token:token", "Sign a token for OAUTHBEARER clients."),
        "codec": ("mockbroker.cli.codec:codec", "Show the wire format of messages."),
        "doctor": ("mockbroker.cli.doctor:doctor", "Check this machine: Java, ports, extras."),
        "decode": ("mockbroker.cli.decode:decode", "Explain bytes of the Kafka protocol."),
    },
    help="A Kafka cluster for tests in one process, and tools for it.",
    version_of="mockbroker",
)
