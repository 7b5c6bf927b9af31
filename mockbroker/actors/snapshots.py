"""What a server is started from besides its options, and how it is put back later.

Everything here runs in the server's own trio run, at one go: no client sees a cluster that is half
one and half the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from mockbroker.actors.config import ServerConfig, ServerError
from mockbroker.actors.data_dir import DataDir
from mockbroker.actors.seeding import seed_topics
from mockbroker.actors.snapshot_files import read_directory, write_directory
from mockbroker.core.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.image import ClusterImage, IdsImage
from mockbroker.core.snapshot.restore import KEEP, Producers, RestoreError, check_fits
from mockbroker.core.snapshot.restore import restore as restore_cluster

if TYPE_CHECKING:
    from mockbroker.actors.server import ClusterServer


class Stored(NamedTuple):
    """A cluster in a directory to go on from, and the directory if it is to be kept up to date."""

    image: ClusterImage | None
    data_dir: DataDir | None

    def specs(self, config: ServerConfig) -> list[BrokerSpec]:
        """The brokers to start with: those of the image. Raises ServerError if others are asked
        for.
        """
        asked = config.specs()
        if self.image is None:
            return asked
        there = [BrokerSpec(b.node_id, b.rack) for b in self.image.settings.brokers]
        ids = [spec.node_id for spec in there]
        if config.node_ids is not None and sorted(config.node_ids) != ids:
            wanted = ",".join(str(node_id) for node_id in sorted(config.node_ids))
            present = ",".join(map(str, ids))
            raise ServerError(f"brokers {wanted} are asked for, but stored are {present}")
        return there

    def configs(self, config: ServerConfig) -> dict[str, str]:
        """The static broker configs: what is stored, under what is asked for."""
        stored = {} if self.image is None else self.image.settings.static_configs
        return {**stored, **config.broker_configs()}


def open_stored(config: ServerConfig) -> Stored:
    """What the options name. Raises ServerError that names the file which cannot be read."""
    if config.data_dir is not None:
        if config.load is not None:
            raise ServerError("a data directory cannot begin with what another one holds")
        data_dir = DataDir(config.data_dir, sync=config.sync, recover=config.recover)
        return Stored(data_dir.image, data_dir)
    if config.sync:
        raise ServerError("sync is for a data directory, and none is given")
    assert config.load is not None
    return Stored(read_directory(config.load, recover=config.recover).image, None)


def check(cluster: Cluster, image: ClusterImage) -> None:
    """Raise ServerError where a cluster cannot be what an image says."""
    try:
        check_fits(cluster, image)
    except RestoreError as error:
        raise ServerError(str(error)) from None


def put_back(cluster: Cluster, image: ClusterImage, producers: Producers = KEEP) -> None:
    """Make a cluster what an image says. Raises ServerError where that cannot be."""
    check(cluster, image)
    restore_cluster(cluster, image, producers)


class Snapshots:
    """Takes snapshots of a server's cluster, and goes back to them."""

    def __init__(self, server: ClusterServer) -> None:
        self._server = server

    def take(self) -> ClusterImage:
        """The cluster as it is now. Records are not copied, so this takes next to no time."""
        return capture(self._server.cluster)

    def restore(self, image: ClusterImage, producers: Producers = KEEP) -> None:
        """Let the cluster be as it was when `image` was taken; connections stay open.

        `producers` says what becomes of idempotent producers that have gone on since. The clock
        does not go back, but it goes forward where the image is from the future. Raises
        ServerError.
        """
        if producers not in get_args(Producers):
            known = " or ".join(map(repr, get_args(Producers)))
            raise ServerError(f"producers are to {known}, not {producers!r}")
        server = self._server
        check(server.cluster, image)
        ahead_ms = image.at_ms - server.cluster.now_ms()
        if ahead_ms > 0:
            server.move_clock_on(ahead_ms)
        put_back(server.cluster, image, producers)

    def reset(self) -> None:
        """Begin again: the brokers and topics that the cluster was started with, and nothing else.

        Topics are made anew, with new ids; connections stay open.
        """
        server = self._server
        config, cluster = server.config, server.cluster
        fresh = Cluster(
            brokers=config.specs(),
            configs=cluster.configs.static,
            now_ms=cluster.now_ms,
            kafka_version=config.kafka_version,
        )
        fresh.scram_credentials.update(server.initial_credentials)
        image = capture(fresh)
        settings = msgspec.structs.replace(image.settings, cluster_id=cluster.cluster_id)
        # Ids are drawn on from where they are: those of a cluster that never was do not count.
        put_back(cluster, image._replace(settings=settings, ids=IdsImage(*cluster.ids.position)))
        seed_topics(cluster, config.topics)

    def save(self, directory: Path) -> None:
        """Write the cluster to a directory, in place of what was saved there. Raises ServerError.

        The directory can be loaded, or go on as a data directory.
        """
        write_directory(directory, self.take())

    def load(self, directory: Path, *, recover: bool = False) -> None:
        """Let the cluster be what a directory holds. Raises ServerError; then nothing changes."""
        self.restore(read_directory(directory, recover=recover).image)
