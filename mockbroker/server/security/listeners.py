"""The secured listeners of a cluster: TLS, SASL, or both.

Imported only for listeners other than PLAINTEXT. Certificates and keys come from the `ssl.*`
configs as in Kafka. Without these, a test authority is made, and clients find its files in
`directory`.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mockbroker.core.configs.defs import ConfigValue
from mockbroker.core.errors import ConfigError
from mockbroker.core.security.principals import PrincipalMapper
from mockbroker.core.security.sasl.authenticator import Authenticator
from mockbroker.core.security.sasl.jwt import TokenRules
from mockbroker.core.security.sasl.realm import Realm, scram_credentials
from mockbroker.server.config import SASL_MECHANISMS, ListenerSpec, ServerConfig, ServerError
from mockbroker.server.network.transport import SocketTransport, Transport
from mockbroker.server.private_files import write_private
from mockbroker.server.security.connections import SaslConnection, SecureConnection
from mockbroker.server.security.tls_transport import TlsTransport

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.handlers.base import ConnectionInfo
    from mockbroker.server.network.acceptor import AcceptedTransport
    from mockbroker.server.network.socket_server import SocketServer
    from mockbroker.server.security.certificates import Authority
    from mockbroker.server.security.token_keys import TokenKeys


TOKEN_KEY = "tokens.key"  # noqa: S105 - the name of a file
"""The file of the key that signs tokens."""


class ListenerConfigs:
    """The present broker configs of one listener: its own outrank the cluster's."""

    def __init__(
        self, listener: ListenerSpec, own: Mapping[str, ConfigValue], cluster: Cluster
    ) -> None:
        self.listener = listener
        self._cluster = cluster
        self._own = own

    def own(self, name: str) -> ConfigValue:
        """The listener's own value; None without one."""
        return self._own.get(name)

    def get(self, name: str) -> ConfigValue:
        own = self._own.get(name)
        return self._cluster.configs.get(name) if own is None else own

    def text(self, name: str) -> str | None:
        """A config that is text; None if it is empty or not set."""
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
    """The secured listeners of one cluster. Raises ServerError or ConfigError for an invalid
    config. `close` removes the directory of clients' files if it is a temporary one.
    """

    def __init__(self, config: ServerConfig, cluster: Cluster) -> None:
        self.config = config
        self.cluster = cluster
        self._temporary: Path | None = None
        self.listeners: dict[str, SecuredListener] = {}
        if any(listener.is_sasl for listener in config.listeners):
            cluster.scram_credentials.update(scram_credentials(config.users, cluster.runtime.ids))
        try:
            for listener in config.listeners:
                if listener.security_protocol != "PLAINTEXT":
                    own = config.listener_configs(listener)
                    settings = ListenerConfigs(listener, own, cluster)
                    self.listeners[listener.name] = SecuredListener(self, settings)
        except BaseException:
            self.close()
            raise

    @cached_property
    def directory(self) -> Path:
        """The directory of the files for clients."""
        wanted = self.config.security_directory
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
        from mockbroker.server.security.certificates import Authority

        try:
            return Authority(self.directory)
        except (OSError, ValueError) as error:
            raise ServerError(f"no authority can be made in {self.directory}: {error}") from None

    @cached_property
    def tokens(self) -> TokenKeys:
        """The keys that sign OAUTHBEARER tokens."""
        from mockbroker.server.security.token_keys import TokenKeys

        wanted = self.config.security_directory
        path = None if wanted is None else wanted / TOKEN_KEY
        pem = None if path is None or not path.exists() else path.read_bytes()
        try:
            return TokenKeys(self.cluster.runtime.now_ms, pem)
        except ValueError as error:
            raise ServerError(f"{path} is not a token key: {error}") from None

    @property
    def has_authority(self) -> bool:
        """Whether the test authority was made."""
        return "authority" in self.__dict__

    def connect(
        self,
        server: SocketServer,
        listener: str,
        accepted: AcceptedTransport,
        info: ConnectionInfo,
        wrap: Callable[[Transport], Transport],
    ) -> SecureConnection:
        """A connection of a secured listener; `wrap` wraps the transport below TLS."""
        secured = self.listeners[listener]
        tls = secured.tls_transport(accepted)
        serving = (wrap(tls or accepted), server, listener, info, accepted, tls, secured.mapper)
        if secured.realm is None:
            return SecureConnection(*serving)
        return SaslConnection(*serving, Authenticator(secured.realm))

    def write_files(self) -> Path:
        """Write a client certificate and the key of tokens; returns their directory."""
        if self.has_authority:
            self.authority.client()
        if any("OAUTHBEARER" in realm.mechanisms() for realm in self.realms()):
            write_private(self.directory / TOKEN_KEY, self.tokens.private_pem())
        return self.directory

    def realms(self) -> list[Realm]:
        """The realms of the SASL listeners."""
        return [each.realm for each in self.listeners.values() if each.realm is not None]

    def hosts(self) -> list[str]:
        """The host names of brokers, for their certificate."""
        hosts = ["localhost", "127.0.0.1", "::1", socket.gethostname()]
        for listener in self.config.listeners:
            hosts += [listener.host, listener.advertised_host or listener.host]
        return hosts

    def close(self) -> None:
        """Remove temporary files. Idempotent."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


class SecuredListener:
    """One listener other than PLAINTEXT, with the shared state of its connections."""

    def __init__(self, security: Security, settings: ListenerConfigs) -> None:
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
            from mockbroker.server.security.tls_context import server_context

            self.context = server_context(security, settings)
        if settings.listener.is_sasl:
            self.realm = _realm(security, settings)

    def tls_transport(self, accepted: AcceptedTransport) -> TlsTransport | None:
        """The transport of a new connection, before its handshake; None without TLS."""
        if self.context is None:
            return None
        assert isinstance(accepted, SocketTransport)  # nothing else carries TLS
        context, self._next_context = self._next_context or self.context, None
        return TlsTransport(accepted, context)

    def show_expired_certificate(self) -> None:
        """Use an expired certificate for the next connection."""
        if self.context is None:
            return
        if self._expired_context is None:
            from mockbroker.server.security.tls_context import expired_context

            self._expired_context = expired_context(self._security, self.settings)
        self._next_context = self._expired_context


def _realm(security: Security, settings: ListenerConfigs) -> Realm:
    def mechanisms() -> Sequence[str]:
        # The config may change while the cluster runs, also to unsupported mechanisms.
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
            allow_unsigned=security.config.allow_unsigned_tokens,
        )

    def verify(algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> bool:
        return security.tokens.verify(algorithm, key_id, signed, signature)  # made at first use

    for mechanism in settings.texts("sasl.enabled.mechanisms"):
        if mechanism not in SASL_MECHANISMS:
            raise ConfigError(
                "sasl.enabled.mechanisms",
                f"{mechanism} is not played; there are {', '.join(SASL_MECHANISMS)}",
            )
    return Realm(
        mechanisms=mechanisms,
        max_reauth_ms=max_reauth_ms,
        passwords=dict(security.config.users),
        scram=security.cluster.scram_credentials,
        ids=security.cluster.runtime.ids,
        token_rules=token_rules,
        verify=verify,
        find_token=security.cluster.delegation_tokens.credential,
    )
