"""Stored clusters for the start of a server, and its snapshots.

All of it runs in the server's trio run without a checkpoint: no client sees half of a restore.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.image import ClusterImage, IdsImage
from mockbroker.core.snapshot.restore import KEEP, Producers, RestoreError, check_fits
from mockbroker.core.snapshot.restore import restore as restore_cluster
from mockbroker.server.config import ServerConfig, ServerError
from mockbroker.server.seeding import seed_topics
from mockbroker.server.storage.data_dir import DataDir
from mockbroker.server.storage.snapshot_files import FILE, read_directory, write_directory

if TYPE_CHECKING:
    from mockbroker.server.cluster_server import ClusterServer


class StoredCluster(NamedTuple):
    """A stored cluster, its directory, and that as a data directory if it is one."""

    image: ClusterImage | None
    data_dir: DataDir | None
    directory: Path

    def specs(self, config: ServerConfig) -> list[BrokerSpec]:
        """The brokers of the image. Raises ServerError if the config names others."""
        configured = config.specs()
        if self.image is None:
            return configured
        there = [BrokerSpec(b.node_id, b.rack) for b in self.image.settings.brokers]
        ids = [spec.node_id for spec in there]
        if config.node_ids is not None and sorted(config.node_ids) != ids:
            wanted = ",".join(str(node_id) for node_id in sorted(config.node_ids))
            present = ",".join(map(str, ids))
            raise ServerError(f"brokers {wanted} are configured, but {present} are stored")
        return there

    def configs(self, config: ServerConfig) -> dict[str, str]:
        """The static broker configs: those of the config outrank the stored ones."""
        stored = {} if self.image is None else self.image.settings.static_configs
        return {**stored, **config.broker_configs()}


def open_stored(config: ServerConfig) -> StoredCluster:
    """The cluster that the config names. Raises ServerError that names an unreadable file."""
    if config.data_dir is not None:
        if config.load is not None:
            raise ServerError("data_dir and load exclude each other")
        data_dir = DataDir(config.data_dir, sync=config.sync, recover=config.recover)
        return StoredCluster(data_dir.image, data_dir, config.data_dir)
    if config.sync:
        raise ServerError("sync needs data_dir")
    assert config.load is not None
    image = read_directory(config.load, recover=config.recover).image
    return StoredCluster(image, None, config.load)


def check(cluster: Cluster, image: ClusterImage) -> None:
    """Raise ServerError if a cluster cannot be restored to an image."""
    try:
        check_fits(cluster, image)
    except RestoreError as error:
        raise ServerError(str(error)) from None


def restore_image(cluster: Cluster, image: ClusterImage, producers: Producers = KEEP) -> None:
    """Make a cluster equal to an image. Raises ServerError if that is impossible."""
    check(cluster, image)
    restore_cluster(cluster, image, producers)


def restore_stored(cluster: Cluster, image: ClusterImage, directory: Path) -> None:
    """Make a new cluster equal to the image in a directory.

    Raises ServerError; the cluster is of no use then.
    """
    check(cluster, image)
    with _refused(directory):
        restore_cluster(cluster, image)


@contextmanager
def _refused(directory: Path) -> Iterator[None]:
    """Any error is a ServerError that names the file: nothing is impossible in a file."""
    try:
        yield
    except Exception as error:
        raise ServerError(
            f"{directory / FILE} contradicts itself ({type(error).__name__}: {error}), although "
            "its checksums are right: another program or release wrote it. Use another directory."
        ) from error


def read_snapshot(directory: Path, *, recover: bool = False) -> ClusterImage:
    """The image in a directory, which a cluster has been made of, so that it can be restored.

    Raises ServerError.
    """
    image = read_directory(directory, recover=recover).image
    settings = image.settings
    with _refused(directory):
        rehearsal = Cluster(
            [BrokerSpec(each.node_id, each.rack) for each in settings.brokers],
            settings.static_configs,
            now_ms=lambda: image.at_ms,
            kafka_version=settings.kafka_version,
        )
    restore_stored(rehearsal, image, directory)
    return image


class Snapshots:
    """Takes snapshots of a server's cluster, and restores them."""

    def __init__(self, server: ClusterServer) -> None:
        self._server = server

    def take(self) -> ClusterImage:
        """The present cluster. Records are not copied, so this is cheap."""
        return capture(self._server.cluster)

    def restore(self, image: ClusterImage, producers: Producers = KEEP) -> None:
        """Make the cluster equal to `image`; connections stay open.

        `producers` decides about idempotent producers that have continued since. The clock is never
        set back; it jumps to the time of an image from the future. Raises ServerError.
        """
        if producers not in get_args(Producers):
            known = " or ".join(map(repr, get_args(Producers)))
            raise ServerError(f"producers are to {known}, not {producers!r}")
        server = self._server
        check(server.cluster, image)
        ahead_ms = image.at_ms - server.cluster.runtime.now_ms()
        if ahead_ms > 0:
            server.jump_clock(ahead_ms)
        restore_image(server.cluster, image, producers)

    def reset(self) -> None:
        """Restore the brokers and topics of the cluster's start.

        The topics get new ids; connections stay open.
        """
        server = self._server
        config, cluster = server.config, server.cluster
        fresh = Cluster(
            brokers=config.specs(),
            configs=cluster.configs.static,
            now_ms=cluster.runtime.now_ms,
            kafka_version=config.kafka_version,
        )
        fresh.scram_credentials.update(server.initial_credentials)
        image = capture(fresh)
        settings = msgspec.structs.replace(image.settings, cluster_id=cluster.cluster_id)
        # The ids that the new cluster has drawn do not count.
        restore_image(
            cluster, image._replace(settings=settings, ids=IdsImage(*cluster.runtime.ids.position))
        )
        seed_topics(cluster, config.topics)

    def save(self, directory: Path) -> None:
        """Save the cluster in a directory, in place of the saved one. Raises ServerError.

        The directory can be loaded, or become a data directory.
        """
        write_directory(directory, self.take())

    def load(self, directory: Path, *, recover: bool = False) -> None:
        """Restore the cluster in a directory. Raises ServerError, and then nothing has changed."""
        self.restore(read_snapshot(directory, recover=recover))
