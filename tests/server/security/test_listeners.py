"""The sources of secured listeners, and their temporary files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.errors import ConfigError
from mockbroker.server.config import ListenerSpec, ServerConfig, ServerError
from mockbroker.server.security.listeners import ListenerConfigs, Security

TLS = ListenerSpec("T", security_protocol="SSL")


def test_a_plaintext_cluster_loads_nothing_of_this():
    program = (
        "import sys\n"
        "from mockbroker.cli.serve import serve\n"
        "from mockbroker import Cluster\n"
        "with Cluster(brokers=1): pass\n"
        "heavy = ('mockbroker.server.security', 'mockbroker.core.security.sasl', 'cryptography')\n"
        "sys.exit(' '.join(n for n in sys.modules if n.startswith(heavy)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stderr.strip() == ""


def test_a_plaintext_cluster_has_no_security():
    with Cluster(brokers=1) as kafka, pytest.raises(ServerError, match="PLAINTEXT"):
        kafka.tls  # noqa: B018


def test_temporary_files_go_with_the_cluster():
    with Cluster(brokers=1, security_protocol="SSL") as kafka:
        directory = kafka.tls.directory
        assert kafka.tls.ca_path.is_file()
    assert not directory.exists()


def test_files_in_a_directory_of_the_users_stay(tmp_path):
    config = ServerConfig(brokers=1, listeners=(TLS,), security_directory=tmp_path / "new")
    security = Security(config, CoreCluster(seed=1))
    security.close()
    assert (tmp_path / "new" / "ca.pem").is_file()


def test_a_directory_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    config = ServerConfig(brokers=1, listeners=(TLS,), security_directory=tmp_path / "file" / "x")
    with pytest.raises(ServerError, match="cannot make"):
        Security(config, CoreCluster(seed=1))


def test_files_for_clients_are_written_when_asked_for(tmp_path):
    listener = ListenerSpec("S", security_protocol="SASL_SSL")
    config = ServerConfig(brokers=1, listeners=(listener,), security_directory=tmp_path)
    cluster = CoreCluster(seed=1, configs=config.broker_configs())
    assert Security(config, cluster).write_files() == tmp_path
    names = {path.name for path in tmp_path.iterdir()}
    assert {"ca.pem", "truststore.p12", "client.pem", "client.key", "client.p12"} <= names
    assert (tmp_path / "tokens.key").stat().st_mode & 0o077 == 0


def test_a_listeners_own_configs_outrank_the_clusters():
    cluster = CoreCluster(seed=1, configs={"connections.max.reauth.ms": "5"})
    listener = ListenerSpec("S", security_protocol="SASL_PLAINTEXT")
    plain = ListenerConfigs(listener, {}, cluster)
    own = ListenerConfigs(listener, {"connections.max.reauth.ms": 7}, cluster)
    assert plain.number("connections.max.reauth.ms") == 5
    assert own.number("connections.max.reauth.ms") == 7
    assert (plain.own("connections.max.reauth.ms"), own.own("connections.max.reauth.ms")) == (
        None,
        7,
    )


def test_configs_with_a_listeners_prefix_are_its_own():
    listeners = (TLS, ListenerSpec("other"), ListenerSpec("with.dots"))
    configs = {
        "listener.name.t.ssl.client.auth": "required",
        "listener.name.with.dots.max.connections": "4",
        "num.partitions": "3",
    }
    config = ServerConfig(brokers=1, listeners=listeners, configs=configs)
    assert config.listener_configs(listeners[0]) == {"ssl.client.auth": "required"}
    assert config.listener_configs(listeners[1]) == {}
    assert config.listener_configs(listeners[2]) == {"max.connections": 4}
    assert len(config.specs()) == 1
    assert config.broker_configs() == {"num.partitions": "3"}


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a")])
def test_a_config_belongs_to_the_listener_with_the_longest_prefix(names):
    configs = {"listener.name.a.b.max.connections": "4", "listener.name.a.max.connections": "5"}
    listeners = tuple(map(ListenerSpec, names))
    config = ServerConfig(brokers=1, listeners=listeners, configs=configs)
    own = {each.name: config.listener_configs(each) for each in listeners}
    assert own == {"a": {"max.connections": 5}, "a.b": {"max.connections": 4}}
    assert len(config.specs()) == 1


@pytest.mark.parametrize(
    ("protocol", "configs", "message"),
    [
        ("SSL", {"ssl.principal.mapping.rules": "RULE:("}, "ssl.principal.mapping.rules"),
        ("SASL_SSL", {"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "GSSAPI is not played"),
        (
            "SASL_SSL",
            {"listener.name.sasl_ssl.ssl.client.auth": "x"},
            "listener.name.sasl_ssl.ssl.client.auth: Invalid value x",
        ),
        (
            "SASL_SSL",
            {"listener.name.sasl_ssl.scram-sha-256.connections.max.reauth.ms": "x"},
            "listener.name.sasl_ssl.scram-sha-256.connections.max.reauth.ms: Invalid value x",
        ),
        (
            "SSL",
            {"listener.name.ssl.ssl.client.aut": "required"},
            "listener.name.ssl.ssl.client.aut: no broker config has this name; did you mean "
            "'ssl.client.auth'?",
        ),
        (
            "PLAINTEXT",
            {"listener.name.plaintext.max.conections": "3"},
            "listener.name.plaintext.max.conections: no broker config has this name; did you mean "
            "'max.connections'?",
        ),
        (
            "PLAINTEXT",
            {"listener.name.plaintex.max.connections": "3"},
            "listener.name.plaintex.max.connections: there is no listener 'plaintex'; did you mean "
            "'plaintext'?",
        ),
    ],
)
def test_configs_that_do_not_fit_are_said_at_the_start(protocol, configs, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Cluster(brokers=1, security_protocol=protocol, configs=configs).start()


def test_an_unknown_security_protocol_is_said():
    with pytest.raises(ServerError, match="'TLS' is no security protocol"):
        Cluster(security_protocol="TLS")


@pytest.mark.parametrize(
    ("listeners", "message"),
    [
        ((ListenerSpec("A"), ListenerSpec("A")), "two listeners are called A$"),
        (
            (ListenerSpec("A"), ListenerSpec("a")),
            r"two listeners are called a \(A is the same name\)",
        ),
        (
            (ListenerSpec("A", port=9092), ListenerSpec("B", port=9094)),
            "listeners A and B both want port 9094",
        ),
    ],
)
def test_listeners_that_collide_are_said(listeners, message):
    with pytest.raises(ServerError, match=message):
        ServerConfig(brokers=3, listeners=listeners).specs()


def test_passwords_are_not_part_of_a_configs_text():
    config = ServerConfig(users={"alice": "alice-secret"}, listeners=(TLS,))
    assert "alice-secret" not in repr(config)


def test_equal_seeds_give_equal_salts(tmp_path: Path):
    listener = ListenerSpec("S", security_protocol="SASL_PLAINTEXT")

    def salts(seed: int) -> list[bytes]:
        config = ServerConfig(brokers=1, listeners=(listener,), users={"alice": "x"}, seed=seed)
        cluster = CoreCluster(seed=seed, configs=config.broker_configs())
        Security(config, cluster)
        return [credential.salt for credential in cluster.scram_credentials["alice"].values()]

    assert salts(1) == salts(1)
    assert salts(1) != salts(2)
