"""`mockbroker serve` with listeners that authenticate, and tokens for them."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from mockbroker.cli.cluster_options import build_config
from mockbroker.cli.config_file import load, server_config
from mockbroker.server.config import ListenerSpec, ServerError
from tests.cli.conftest import Run
from tests.support.serving import Served, serve_and_fail

NOTHING: dict[str, object] = {
    "brokers": None,
    "node_ids": None,
    "rack": (),
    "host": None,
    "port": None,
    "advertised_host": None,
    "topics": (),
    "configs": (),
    "kafka_version": None,
    "seed": None,
    "config_file": None,
}


def words(served: Served) -> dict[str, str]:
    """The ready line's NAME=VALUE words."""
    return dict(word.split("=", 1) for word in served.ready_line.split()[1:])


def brokers(bootstrap: str, **config: object) -> int:
    """How many brokers a client sees that is let in."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **named})
    return len(client.list_topics(timeout=20).brokers)


def test_each_listener_is_told_in_the_ready_line(tmp_path: Path) -> None:
    """The first as `bootstrap`, the others by name, and the directory of the clients' files."""
    directory = tmp_path / "files"
    with Served(
        *("--brokers", "2", "--security-dir", str(directory), "--user", "alice:secret"),
        *("--listener", "OPEN:PLAINTEXT:0", "--listener", "SECURE:SASL_SSL:0"),
    ) as served:
        told = words(served)
        assert list(told) == ["bootstrap", "SECURE", "files"]
        assert told["files"] == str(directory)
        assert brokers(told["bootstrap"]) == 2
        login = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "alice"}
        found = brokers(
            told["SECURE"],
            security_protocol="SASL_SSL",
            ssl_ca_location=str(directory / "ca.pem"),
            sasl_password="secret",
            **login,
        )
        assert found == 2


def test_a_listener_may_be_called_like_its_protocol(tmp_path: Path) -> None:
    with Served(
        *("--brokers", "1", "--listener", "ssl:0", "--security-dir", str(tmp_path)),
        *("--config", "ssl.client.auth=required"),
    ) as served:
        files = {
            "ssl_ca_location": str(tmp_path / "ca.pem"),
            "ssl_certificate_location": str(tmp_path / "client.pem"),
            "ssl_key_location": str(tmp_path / "client.key"),
        }
        assert brokers(served.bootstrap_servers, security_protocol="SSL", **files) == 1


def test_the_authority_of_a_directory_is_taken_up_again(tmp_path: Path) -> None:
    """A client that trusts it need not be told anew."""
    arguments = ("--brokers", "1", "--listener", "T:SSL:0", "--security-dir", str(tmp_path))
    with Served(*arguments):
        before = (tmp_path / "ca.pem").read_bytes()
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    with Served(*arguments) as served:
        assert (tmp_path / "ca.pem").read_bytes() == before
        assert brokers(
            served.bootstrap_servers,
            security_protocol="SSL",
            ssl_ca_location=str(tmp_path / "ca.pem"),
        )
    assert context.get_ca_certs()


def test_a_token_of_the_directorys_key_lets_its_user_in(run: Run, tmp_path: Path) -> None:
    arguments = ("--brokers", "1", "--listener", "T:SASL_PLAINTEXT:0")
    with Served(*arguments, "--security-dir", str(tmp_path)) as served:
        key = tmp_path / "tokens.key"
        token = run("token", "alice", "--key", key, "--claim", "scope=x").stdout.strip()
        assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", token)
        assert brokers_by_token(served.bootstrap_servers, token) == 1


def brokers_by_token(bootstrap: str, token: str) -> int:
    client = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, 2e9),
        }
    )
    return len(client.list_topics(timeout=20).brokers)


def test_unsigned_tokens_need_a_flag(run: Run) -> None:
    with Served("--listener", "T:SASL_PLAINTEXT:0", "--allow-unsigned-tokens") as served:
        unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ."
        assert brokers_by_token(served.bootstrap_servers, unsigned) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--listener", "A"), "--listener A: expected NAME:PROTOCOL:PORT"),
        (("--listener", "A:SSL:x"), "--listener A:SSL:x: expected NAME:PROTOCOL:PORT"),
        (("--listener", "A:SSL:65536"), "expected NAME:PROTOCOL:PORT"),
        (("--listener", "A:B:C:1"), "expected NAME:PROTOCOL:PORT"),
        (("--listener", "A:TLS:0"), "'TLS' is no security protocol"),
        (("--listener", "A:SSL:0", "--port", "1"), "a listener names its port"),
        (("--user", "secret"), "--user: expected NAME:PASSWORD"),
        (("--listener", "A:SSL:0", "--security-dir", "/dev/null/x"), "cannot make /dev/null/x"),
    ],
)
def test_what_does_not_fit_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    failed = serve_and_fail(*arguments)
    assert failed.code == 2
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert "secret" not in failed.stderr.replace("security", "")


def test_files_that_are_no_keys_are_named(tmp_path: Path) -> None:
    (tmp_path / "tokens.key").write_text("nonsense")
    arguments = ("--listener", "A:SASL_PLAINTEXT:0", "--security-dir", str(tmp_path))
    assert "tokens.key is not a token key" in serve_and_fail(*arguments).stderr
    (tmp_path / "ca.key").write_text("nonsense")
    arguments = ("--listener", "A:SSL:0", "--security-dir", str(tmp_path))
    assert "no authority can be made" in serve_and_fail(*arguments).stderr


def test_a_token_needs_a_key_that_is_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("nonsense")
    failed = run("token", "alice", "--key", tmp_path / "key")
    assert failed.exit_code == 1
    assert "is not a token key" in failed.stderr
    assert run("token", "alice", "--key", tmp_path / "none").exit_code == 2


def test_the_config_file_describes_listeners_and_users(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(
        """
        security_dir = "files"
        allow_unsigned_tokens = true

        [[listeners]]
        port = 9092

        [[listeners]]
        name = "SECURE"
        security_protocol = "SASL_SSL"
        port = 9192
        configs = { "ssl.client.auth" = "requested", "connections.max.reauth.ms" = 60000 }

        [users]
        alice = "alice-secret"
        """
    )
    config = server_config(load(path))
    assert config.listeners == (
        ListenerSpec("PLAINTEXT", port=9092),
        ListenerSpec(
            "SECURE",
            port=9192,
            security_protocol="SASL_SSL",
            configs={"ssl.client.auth": "requested", "connections.max.reauth.ms": "60000"},
        ),
    )
    assert config.users == {"alice": "alice-secret"}
    assert (config.security_directory, config.allow_unsigned_tokens) == (Path("files"), True)


def test_flags_outrank_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text('[users]\nalice = "old"\nbob = "b"\n[[listeners]]\nname = "A"\nport = 1\n')
    told = {**NOTHING, "config_file": path, "users": ("alice:new",), "host": "localhost"}
    config = build_config(**told, listeners=("X:SSL:5", "Y:SSL:9"))  # type: ignore[arg-type]
    assert config.users == {"alice": "new", "bob": "b"}
    assert [(each.name, each.host, each.port) for each in config.listeners] == [
        ("X", "localhost", 5),
        ("Y", "localhost", 9),
    ]


def test_a_listeners_protocol_in_the_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text('[[listeners]]\nsecurity_protocol = "TLS"\n')
    with pytest.raises(ServerError, match="no security protocol"):
        server_config(load(path))
