"""What the listeners of a cluster ask of their clients: TLS, SASL, or both.

Made only when some listener is not PLAINTEXT, so that nobody else pays for importing it.
Certificates and keys come from the `ssl.*` configs as in Kafka; where they name none, a test
authority is made on demand, whose files clients can read from `directory`.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mockbroker.actors.config import SASL_MECHANISMS, ListenerSpec, ServerConfig, ServerError
from mockbroker.actors.private_files import write_private
from mockbroker.actors.secure_connection import SaslConnection, SecureConnection
from mockbroker.actors.stats import Stats
from mockbroker.actors.tls import TlsTransport
from mockbroker.actors.transport import SocketTransport, Transport
from mockbroker.core.configs.defs import BROKER_CONFIGS, ConfigValue
from mockbroker.core.errors import ConfigError
from mockbroker.core.security.principals import PrincipalMapper
from mockbroker.core.security.sasl.authenticator import Authenticator
from mockbroker.core.security.sasl.jwt import TokenRules
from mockbroker.core.security.sasl.realm import Realm, scram_credentials

if TYPE_CHECKING:
    from mockbroker.actors.broker_host import BrokerHost
    from mockbroker.actors.certificates import Authority
    from mockbroker.actors.connection import Trace
    from mockbroker.actors.network import Link
    from mockbroker.actors.token_keys import TokenKeys
    from mockbroker.core.cluster import Cluster
    from mockbroker.handlers.base import ConnectionInfo


TOKEN_KEY = "tokens.key"  # noqa: S105 - the name of a file
"""The file of the key that signs tokens."""


class ListenerSettings:
    """A listener's view of the broker configs: its own before the cluster's, as they are now."""

    def __init__(self, listener: ListenerSpec, own: dict[str, str], cluster: Cluster) -> None:
        self.listener = listener
        self._cluster = cluster
        self._own: dict[str, ConfigValue] = {}
        for name, text in own.items():
            # Kafka lets some be set for one mechanism: scram-sha-256.connections.max.reauth.ms.
            mechanism, dot, rest = name.partition(".")
            plain = rest if dot and mechanism.upper() in SASL_MECHANISMS else name
            definition = BROKER_CONFIGS.get(plain)
            if definition is None:
                raise ConfigError(name, "no broker config of Kafka 4.3 has this name")
            self._own[name] = definition.parse(text)

    def own(self, name: str) -> ConfigValue:
        """What the listener has for itself, None if nothing."""
        return self._own.get(name)

    def get(self, name: str) -> ConfigValue:
        own = self._own.get(name)
        return self._cluster.configs.get(name) if own is None else own

    def text(self, name: str) -> str | None:
        """A config that is text; None when it is not set."""
        value = self.get(name)
        assert value is None or isinstance(value, str)
        return value or None

    def number(self, name: str) -> int:
        value = self.get(name)
        assert isinstance(value, int)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.get(name)
        assert isinstance(value, tuple)
        return value


class Security:
    """The secured listeners of one cluster. Raises ServerError or ConfigError when they cannot be.

    `directory` holds the files for clients; a temporary one is removed by `close`.
    """

    def __init__(self, config: ServerConfig, cluster: Cluster) -> None:
        self._config = config
        self._temporary: Path | None = None
        self.listeners: dict[str, SecuredListener] = {}
        self._cluster = cluster
        if any(listener.is_sasl for listener in config.listeners):
            cluster.scram_credentials.update(scram_credentials(config.users, cluster.ids))
        try:
            for listener in config.listeners:
                if listener.security_protocol != "PLAINTEXT":
                    own = config.listener_configs(listener)
                    settings = ListenerSettings(listener, own, cluster)
                    self.listeners[listener.name] = SecuredListener(self, settings)
        except BaseException:
            self.close()
            raise

    @cached_property
    def directory(self) -> Path:
        """Where the files for clients are."""
        wanted = self._config.security_directory
        if wanted is not None:
            try:
                wanted.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ServerError(f"cannot make {wanted}: {error.strerror}") from None
            return wanted
        self._temporary = Path(tempfile.mkdtemp(prefix="mockbroker-"))
        return self._temporary

    @cached_property
    def authority(self) -> Authority:
        """The test authority that signs the brokers' certificates and those of clients."""
        from mockbroker.actors.certificates import Authority

        try:
            return Authority(self.directory)
        except (OSError, ValueError) as error:
            raise ServerError(f"no authority can be made in {self.directory}: {error}") from None

    @cached_property
    def tokens(self) -> TokenKeys:
        """The keys that sign OAUTHBEARER tokens."""
        from mockbroker.actors.token_keys import TokenKeys

        wanted = self._config.security_directory
        path = None if wanted is None else wanted / TOKEN_KEY
        pem = None if path is None or not path.exists() else path.read_bytes()
        try:
            return TokenKeys(self._cluster.now_ms, pem)
        except ValueError as error:
            raise ServerError(f"{path} is not a key for tokens: {error}") from None

    @property
    def has_authority(self) -> bool:
        """Whether something has needed the test authority."""
        return "authority" in self.__dict__

    @property
    def allow_unsigned_tokens(self) -> bool:
        return self._config.allow_unsigned_tokens

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def passwords(self) -> dict[str, str]:
        return dict(self._config.users)

    def connect(
        self,
        host: BrokerHost,
        name: str,
        link: Link,
        info: ConnectionInfo,
        stats: Stats,
        trace: Trace | None,
    ) -> SecureConnection:
        """A connection of the listener `name`, which asks its client who it is."""
        listener = self.listeners[name]
        info.security_protocol = listener.protocol
        transport = listener.transport(link)
        serving = (transport, self.cluster, host.broker, name, info, stats, trace, host.gate)
        if listener.realm is None:
            return SecureConnection(*serving, listener.mapper)
        return SaslConnection(*serving, listener.mapper, Authenticator(listener.realm))

    def write_files(self) -> Path:
        """Write a client certificate and the key of tokens, for who asks; their directory."""
        if self.has_authority:
            self.authority.client()
        if any("OAUTHBEARER" in realm.mechanisms() for realm in self.realms()):
            write_private(self.directory / TOKEN_KEY, self.tokens.private_pem())
        return self.directory

    def realms(self) -> list[Realm]:
        """The realms of the SASL listeners."""
        return [each.realm for each in self.listeners.values() if each.realm is not None]

    def hosts(self) -> list[str]:
        """The names by which clients may reach brokers, for the certificate."""
        hosts = ["localhost", "127.0.0.1", "::1", socket.gethostname()]
        for listener in self._config.listeners:
            hosts += [listener.host, listener.advertised_host or listener.host]
        return hosts

    def close(self) -> None:
        """Remove what was made for the run. Idempotent."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


class SecuredListener:
    """One listener that is not PLAINTEXT: what its connections are made of."""

    def __init__(self, security: Security, settings: ListenerSettings) -> None:
        self._security = security
        self._expired_context: ssl.SSLContext | None = None
        self._next_context: ssl.SSLContext | None = None
        self.settings = settings
        self.protocol = settings.listener.security_protocol
        self.context: ssl.SSLContext | None = None
        self.realm: Realm | None = None
        try:
            self.mapper = PrincipalMapper(settings.text("ssl.principal.mapping.rules") or "DEFAULT")
        except ValueError as error:
            raise ConfigError("ssl.principal.mapping.rules", str(error)) from None
        if settings.listener.is_tls:
            from mockbroker.actors.tls_context import server_context

            self.context = server_context(security, settings)
        if settings.listener.is_sasl:
            self.realm = _realm(security, settings)

    def transport(self, link: Link) -> Transport:
        """The transport of a fresh connection; TLS has yet to shake hands."""
        if self.context is None:
            return link
        assert isinstance(link, SocketTransport)  # nothing else carries TLS
        context, self._next_context = self._next_context or self.context, None
        return TlsTransport(link, context)

    def show_expired_certificate(self) -> None:
        """Let the next connection see a certificate that is not valid any more."""
        if self.context is None:
            return
        if self._expired_context is None:
            from mockbroker.actors.tls_context import expired_context

            self._expired_context = expired_context(self._security, self.settings)
        self._next_context = self._expired_context


def _realm(security: Security, settings: ListenerSettings) -> Realm:
    def mechanisms() -> Sequence[str]:
        # The config may change while the cluster runs, to what is not played too.
        enabled = settings.texts("sasl.enabled.mechanisms")
        return [mechanism for mechanism in enabled if mechanism in SASL_MECHANISMS]

    def max_reauth_ms(mechanism: str) -> int:
        own = settings.own(f"{mechanism.lower()}.connections.max.reauth.ms")
        return own if isinstance(own, int) else settings.number("connections.max.reauth.ms")

    def token_rules() -> TokenRules:
        return TokenRules(
            clock_skew_ms=settings.number("sasl.oauthbearer.clock.skew.seconds") * 1000,
            expected_audience=settings.texts("sasl.oauthbearer.expected.audience"),
            expected_issuer=settings.text("sasl.oauthbearer.expected.issuer"),
            sub_claim_name=settings.text("sasl.oauthbearer.sub.claim.name") or "sub",
            allow_unsigned=security.allow_unsigned_tokens,
        )

    def verify(algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> bool:
        return security.tokens.verify(algorithm, key_id, signed, signature)  # made when first used

    for mechanism in settings.texts("sasl.enabled.mechanisms"):
        if mechanism not in SASL_MECHANISMS:
            raise ConfigError(
                "sasl.enabled.mechanisms",
                f"{mechanism} is not played; there are {', '.join(SASL_MECHANISMS)}",
            )
    return Realm(
        mechanisms=mechanisms,
        max_reauth_ms=max_reauth_ms,
        passwords=security.passwords,
        scram=security.cluster.scram_credentials,
        ids=security.cluster.ids,
        token_rules=token_rules,
        verify=verify,
        find_token=security.cluster.delegation_tokens.credential,
    )
