"""What people, tests and rules may do to a cluster, as methods of `Cluster`.

The functions are where they belong: `interventions` for brokers and the network between them,
`partition_interventions` for leaders, followers and watermarks.
"""

from __future__ import annotations

from mockbroker.core import interventions, partition_interventions


class Actions:
    """The base of `Cluster` that holds its actions."""

    stop_broker = interventions.stop_broker
    start_broker = interventions.start_broker
    pause_broker = interventions.pause_broker
    resume_broker = interventions.resume_broker
    add_broker = interventions.add_broker
    remove_broker = interventions.remove_broker
    set_rack = interventions.set_rack
    fail_log_dir = interventions.fail_log_dir
    cut_network = interventions.cut_network
    delay_network = interventions.delay_network
    heal_network = interventions.heal_network
    move_leader = partition_interventions.move_leader
    drop_leader = partition_interventions.drop_leader
    shuffle_leaders = partition_interventions.shuffle_leaders
    elect_unclean = partition_interventions.elect_unclean
    lag_follower = partition_interventions.lag_follower
    release_follower = partition_interventions.release_follower
    shrink_isr = partition_interventions.shrink_isr
    hold_high_watermark = partition_interventions.hold_high_watermark
    release_high_watermark = partition_interventions.release_high_watermark
    move_coordinator = interventions.move_coordinator
    unload_coordinator = interventions.unload_coordinator
    set_high_watermark = partition_interventions.set_high_watermark
