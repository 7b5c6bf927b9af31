"""Brokers and settings to and from an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.configs.resources import ConfigResourceType, named_resources, set_overrides
from mockbroker.core.quotas.client_quotas import ClientQuotas
from mockbroker.core.security.sasl.scram_credential import ScramCredential
from mockbroker.core.snapshot.image import BrokerImage, CredentialImage, SettingsImage

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.quotas.client_quotas import ClientQuotas


def capture_settings(cluster: Cluster) -> SettingsImage:
    """The brokers and all settings."""
    configs, controller = cluster.configs, cluster.controller
    return SettingsImage(
        cluster_id=cluster.cluster_id,
        kafka_version=cluster.profile.release,
        controller_id=controller.node_id,
        controller_epoch=controller.epoch,
        broker_epoch=controller.broker_epoch,
        brokers=[_broker_image(cluster, broker) for broker in cluster.processes.values()],
        static_configs=dict(configs.static),
        default_configs=dict(configs.dynamic_default),
        broker_configs={node_id: dict(own) for node_id, own in configs.dynamic_broker.items()},
        group_configs={group: dict(own) for group, own in configs.groups.items()},
        client_metrics={name: dict(own) for name, own in configs.client_metrics.items()},
        features=dict(cluster.features.levels),
        features_epoch=cluster.features.epoch,
        quotas=[
            (list(entity), dict(values))
            for entity, values in cluster.quotas.describe([], strict=False)
        ],
        credentials=[
            CredentialImage(user, mechanism, c.iterations, c.salt, c.stored_key, c.server_key)
            for user, mechanisms in cluster.scram_credentials.items()
            for mechanism, c in mechanisms.items()
        ],
        acls=list(cluster.acls),
        tokens=list(cluster.delegation_tokens.tokens.values()),
        deleted_epoch=cluster.replication_control.deleted_epoch,
        former_epochs={
            topic_id: dict(epochs)
            for topic_id, epochs in cluster.replication_control.former_epochs.items()
        },
    )


def _broker_image(cluster: Cluster, broker: Broker) -> BrokerImage:
    return BrokerImage(
        broker.node_id,
        broker.rack,
        broker.epoch,
        broker.fenced,
        broker.shutting_down,
        broker.state,
        broker.stopped_how,
        dict(broker.logger_levels),
        sorted(broker.log_dirs.failed),
        cluster.controller.fencing_at_ms(broker.node_id),
        broker.node_id in cluster.brokers,
    )


def put_settings(cluster: Cluster, image: SettingsImage) -> None:
    """Restore the settings of an image, without its brokers.

    Static configs belong to the process of the cluster and stay.
    """
    _put_configs(cluster, image)
    _put_features(cluster, image)
    _put_quotas(cluster.quotas, image)
    cluster.quotas.reset_measurements()
    cluster.telemetry.clear()
    credentials = cluster.scram_credentials
    credentials.clear()
    for each in image.credentials:
        credential = ScramCredential(each.salt, each.iterations, each.stored_key, each.server_key)
        credentials.setdefault(each.user, {})[each.mechanism] = credential
    cluster.acls.replace(image.acls)
    cluster.delegation_tokens.replace(image.tokens)


def _put_configs(cluster: Cluster, image: SettingsImage) -> None:
    wanted: dict[tuple[ConfigResourceType, str], dict[str, str]] = {
        (ConfigResourceType.BROKER, ""): image.default_configs,
        **{
            (ConfigResourceType.BROKER, str(node)): own
            for node, own in image.broker_configs.items()
        },
        **{(ConfigResourceType.GROUP, group): own for group, own in image.group_configs.items()},
        **{
            (ConfigResourceType.CLIENT_METRICS, name): own
            for name, own in image.client_metrics.items()
        },
    }
    for resource in dict.fromkeys((*named_resources(cluster), *wanted)):
        set_overrides(cluster, *resource, wanted.get(resource, {}))


def _put_features(cluster: Cluster, image: SettingsImage) -> None:
    """Clients accept a change only under a higher epoch."""
    features = cluster.features
    if features.levels != image.features:
        absent = dict.fromkeys(set(features.levels) - set(image.features), 0)
        features.set_levels({**absent, **image.features})
    features.epoch = max(features.epoch, image.features_epoch)
    features.memo.clear()


def _put_quotas(quotas: ClientQuotas, image: SettingsImage) -> None:
    wanted = {tuple(entity): values for entity, values in image.quotas}
    for entity, present in list(quotas.describe([], strict=False)):
        gone = set(present) - set(wanted.get(entity, ()))
        if gone:
            quotas.alter(entity, dict.fromkeys(gone), validate_only=False)
    for entity, values in wanted.items():
        quotas.alter(entity, values, validate_only=False)
