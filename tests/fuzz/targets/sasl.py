"""Clients that authenticate, or pretend to: handshakes, tokens and requests in any order.

Each connection of a session says something to a listener with every mechanism: the steps of a real
exchange, some left out, repeated, swapped with others or changed, with tokens in a request or bare
(as before Kafka 1.0). Then it sends requests. The input is the number of the session.

- A broker logs no error; a client that is not authenticated gets no answer but those of ApiVersions
  and SASL.
- A client with the right password is let in all the while.

Memory is not judged here: `sasl.server.max.receive.size` bounds a frame before authentication, and
tests of frames measure that.
"""

from __future__ import annotations

import random
import struct
import time

from mockbroker.core.security.sasl.jwt import encoded, unsigned_token
from mockbroker.server.config import ListenerSpec, ServerConfig
from mockbroker.simulation.streams import SimulatedCluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.metadata import MetadataRequest
from mockbroker_protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.core.security.sasl.scram_client import ScramClient
from tests.fuzz.engine import SessionTarget
from tests.fuzz.mutate import amplified, mutated
from tests.fuzz.targets.virtual_cluster import with_cluster
from tests.fuzz.targets.wire import Client
from tests.fuzz.work import Broken

CONNECTIONS = 25
STEPS = 4  # of a connection, on average
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TOKEN_BYTES_MAX = 400_000
NESTED = b"[" * 100_000
USER, PASSWORD = "alice", "secret"
_SIZE = struct.Struct(">i")


class Sasl(SessionTarget):
    """An input is a number in eight bytes."""

    name = "sasl"
    modules = ("mockbroker.core.security.sasl", "mockbroker.server.security.connections")

    def cost(self) -> int:
        return CONNECTIONS * STEPS

    def run(self, seed: int) -> dict[str, float]:
        return run_session(seed)


def run_session(seed: int) -> dict[str, float]:
    """Run a session; returns the CPU time of each connection, in ms. Raises Broken."""
    config = ServerConfig(
        brokers=1,
        listeners=(ListenerSpec("SASL", security_protocol="SASL_PLAINTEXT"),),
        users={USER: PASSWORD},
        seed=seed,
        allow_unsigned_tokens=True,
        configs={"connections.max.reauth.ms": "5000"},
    )

    async def session(sim: SimulatedCluster, errors: list[str]) -> dict[str, float]:
        made = _Session(sim, random.Random(f"sasl {seed}"), errors)
        for number in range(CONNECTIONS):
            await made.connection(number)
        return made.took

    return with_cluster(config, session)


class _Session:
    def __init__(self, sim: SimulatedCluster, rng: random.Random, errors: list[str]) -> None:
        self.took: dict[str, float] = {}
        self._sim = sim
        self._rng = rng
        self._errors = errors

    async def connection(self, number: int) -> None:
        rng = self._rng
        client = Client(await self._sim.connect(1))
        mechanism = rng.choice(MECHANISMS)
        scram = ScramClient(USER, PASSWORD, "sha256" if mechanism.endswith("256") else "sha512")
        raw = rng.random() < 0.2
        started = time.thread_time()
        for step in self._steps():
            if client.closed:
                break
            if step == "handshake":
                named = mechanism if rng.random() < 0.9 else rng.choice(("", "GSSAPI", "x" * 9_000))
                version = 0 if raw else 1
                await self._ask(client, ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(named))
            elif step in ("first", "final"):
                token = self._token(mechanism, step, scram, client.answer)
                if raw:
                    await client.send(_SIZE.pack(len(token)) + token)
                    await client.wait(1.0)
                else:
                    request = SaslAuthenticateRequest(token)
                    await self._ask(
                        client, ApiKey.SASL_AUTHENTICATE, rng.choice((0, 1, 2)), request
                    )
            elif step == "versions":
                await self._ask(
                    client, ApiKey.API_VERSIONS, rng.choice((0, 3)), ApiVersionsRequest()
                )
            elif step == "metadata":
                await self._ask(client, ApiKey.METADATA, rng.choice((1, 12)), MetadataRequest())
            elif step == "pause":
                await self._sim.sleep(rng.choice((1_500, 6_000)))
            else:
                junk = rng.randbytes(rng.randint(0, 40))
                await client.send(_SIZE.pack(len(junk)) + junk)
                await client.wait(1.0)
        self.took[f"connection {number}"] = (time.thread_time() - started) * 1000
        client.close()
        if self._errors:
            raise Broken(f"a broker logs an error, connection {number}: {self._errors[0]}")
        if number % 5 == 0:
            await self._canary()

    def _steps(self) -> list[str]:
        rng = self._rng
        steps = ["versions", "handshake", "first", "final", "metadata"]
        if rng.random() < 0.5:
            steps += ["pause", "handshake", "first", "final", "metadata"]
        for _ in range(rng.choice((0, 0, 1, 2))):
            at = rng.randrange(len(steps))
            rng.choice(
                (steps.pop, lambda at: steps.insert(at, "junk"), lambda _: rng.shuffle(steps))
            )(at)
        return steps

    async def _ask(self, client: Client, key: ApiKey, version: int, request: object) -> None:
        frame = b"".join(request_frame(RequestHeader(key, version, 0, "fuzz"), request))
        if self._rng.random() < 0.05:
            frame = frame[:12] + mutated(self._rng, frame[12:], (), TOKEN_BYTES_MAX)
            await client.send(_SIZE.pack(len(frame) - 4) + frame[4:])
        else:
            await client.ask(key, version, frame)
        await client.wait(1.0)

    def _token(self, mechanism: str, step: str, scram: ScramClient, answer: object) -> bytes:
        rng = self._rng
        if mechanism == "PLAIN":
            token = f"\0{USER}\0{PASSWORD}".encode()
        elif mechanism == "OAUTHBEARER":
            token = b"n,,\1auth=Bearer " + self._bearer() + b"\1\1"
        elif step == "first":
            token = scram.first()
        else:
            challenge = getattr(answer, "auth_bytes", b"") or b"r=x,s=eA==,i=4096"
            try:
                token = scram.final(bytes(challenge))
            except Exception:  # the broker has not challenged
                token = b"c=biws,r=x,p=eA=="
        if rng.random() < 0.4:
            token = mutated(rng, token, (b"n,,n=alice,r=x", b"\0", b","), TOKEN_BYTES_MAX)
        if rng.random() < 0.01:
            token = amplified(rng, token, TOKEN_BYTES_MAX)
        return token

    def _bearer(self) -> bytes:
        rng = self._rng
        now_s = self._sim.now_ms / 1000
        hostile = (None, "x", -1, 1e308, 10**400, True, [], {}, "\ud800", "NaN")
        claims = {
            "sub": rng.choice((USER, USER, "", "\ud800", 5, None)),
            "exp": now_s + 3600 if rng.random() < 0.7 else rng.choice(hostile),
            "iat": now_s if rng.random() < 0.7 else rng.choice(hostile),
            "nbf": now_s if rng.random() < 0.7 else rng.choice(hostile),
        }
        header = {"alg": rng.choice(("none", "none", "none", "RS256", "ES256", 5, None))}
        if rng.random() < 0.03:
            return b".".join((encoded(NESTED).encode(), b"x", b""))
        return f"{unsigned_token(header, claims)}.{rng.choice(('', '', 'AAAA', '='))}".encode()

    async def _canary(self) -> None:
        client = Client(await self._sim.connect(1))
        await client.answer_to(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
        token = SaslAuthenticateRequest(f"\0{USER}\0{PASSWORD}".encode())
        answer = await client.answer_to(ApiKey.SASL_AUTHENTICATE, 2, token)
        if answer.error_code:
            raise Broken(f"the right password is refused: {answer.error_message}")
        await client.answer_to(ApiKey.METADATA, 12, MetadataRequest())
        client.close()
