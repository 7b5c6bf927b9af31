"""All targets, with the share that each has of a run's inputs."""

from __future__ import annotations

from tests.fuzz.engine import Target
from tests.fuzz.targets.arrays import Arrays
from tests.fuzz.targets.batches import Batches, Compressed
from tests.fuzz.targets.codecs import Codecs
from tests.fuzz.targets.files import Files
from tests.fuzz.targets.http import Http
from tests.fuzz.targets.sasl import Sasl
from tests.fuzz.targets.sessions import Sessions
from tests.fuzz.targets.texts import Texts
from tests.fuzz.targets.tls import Tls

SHARES: dict[Target, float] = {
    Codecs(): 0.55,
    Arrays(): 0.02,
    Batches(): 0.12,
    Compressed(): 0.18,
    Sessions(): 0.14,
    Sasl(): 0.04,
    Tls(): 0.005,
    Texts(): 0.03,
    Http(): 0.02,
    Files(): 0.02,
}
TARGETS: dict[str, Target] = {target.name: target for target in SHARES}
