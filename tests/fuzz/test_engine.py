"""The engine finds what breaks a law, and a number or a file replays it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from math import gcd
from multiprocessing import get_context

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.fuzz import __main__ as command
from tests.fuzz import processes, work
from tests.fuzz.engine import ROOT, Finding, Target, judged, kind_of, run_inputs, shrunk
from tests.fuzz.targets.all import SHARES, TARGETS
from tests.fuzz.targets.codecs import STEP, Codecs, length_fields
from tests.fuzz.work import WORK_MS_MAX, Broken, check_memory, check_steps, slowness


class Fragile(Target):
    """Fails for bytes that contain 7, and takes what it is told to."""

    name = "fragile"

    def draw(self, number: int) -> bytes:
        return self.rng(number).randbytes(40)

    def check(self, data: bytes) -> None:
        if 7 in data:
            raise KeyError("seven")


class Costly(Target):
    """Its inputs say how much they take: thousands of elements."""

    name = "costly"

    def check(self, data: bytes) -> None:
        count = data[0] * 1_000
        assert sum([index * index for index in range(count)]) >= 0


def test_an_input_depends_on_its_number_alone() -> None:
    for target in SHARES:
        assert target.draw(12_345) == target.draw(12_345), target.name


def test_a_finding_has_its_number_its_cause_and_is_made_short() -> None:
    target = Fragile()
    found = list(run_inputs(target, range(50)))
    assert [each.number for each in found] == [n for n in range(50) if 7 in target.draw(n)]
    assert {each.kind for each in found} == {found[0].kind}
    assert found[0].kind.startswith("KeyError in test_engine.py:")
    assert shrunk(target, found[0]).data == b"\7"


def test_memory_beyond_the_law_is_a_finding() -> None:
    target = Costly()
    judged(target, b"\1", memory=True, work_ms_max=WORK_MS_MAX * 1_000)
    with pytest.raises(Broken, match="bytes of memory; the law allows 1,048,578"):
        judged(target, b"\xff", memory=True, work_ms_max=WORK_MS_MAX * 1_000)


class Stubborn(Target):
    """Never ends, and catches what it can."""

    name = "stubborn"

    def check(self, data: bytes) -> None:
        while True:
            with suppress(Exception):
                sum(range(1_000))


class Boundless(Target):
    """Takes ever more memory."""

    name = "boundless"

    def draw(self, number: int) -> bytes:
        return bytes([number])

    def check(self, data: bytes) -> None:
        kept = []
        while True:
            kept.append(bytearray(1 << 26))


def test_an_input_that_does_not_end_is_a_finding_though_it_catches_exceptions() -> None:
    with pytest.raises(Broken, match="does not end within 0 s"):
        judged(Stubborn(), b"", memory=False, work_ms_max=WORK_MS_MAX, hangs_s=0.1)


def test_an_input_that_takes_all_memory_is_a_finding() -> None:
    """In a process of its own, as a run has them."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=processes.prepare) as pool:
        (found,) = pool.submit(findings_of_the_boundless).result()
    assert found.kind.startswith("MemoryError in test_engine.py:")
    assert found.number == 7


def findings_of_the_boundless() -> list[Finding]:
    return list(run_inputs(Boundless(), range(7, 8)))


def test_what_is_built_once_is_no_memory_of_an_input() -> None:
    kept: list[bytearray] = []

    def build() -> None:
        if not kept:
            kept.append(bytearray(1 << 22))

    check_memory(build, 1 << 20)


def test_work_is_measured_in_units_of_a_reference() -> None:
    """However slow the machine, the reference is one."""
    assert slowness() > 0
    target = Costly()
    judged(target, b"\1", memory=False, work_ms_max=0.0)  # looked at closely, and found right


def test_a_kind_is_the_type_and_the_innermost_line() -> None:
    assert kind_of(Broken("takes 300 ms of work")) == "takes 300 ms"


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_a_docstring_and_a_share(name: str) -> None:
    target = TARGETS[name]
    assert target.__doc__
    assert SHARES[target] > 0


def test_a_run_has_every_hostile_length_and_every_cut() -> None:
    """The cases of the codecs are run in a fixed order, each once."""
    codecs = next(target for target in SHARES if isinstance(target, Codecs))
    inputs = command.INPUTS * SHARES[codecs] / sum(SHARES.values())
    assert codecs.cases <= inputs
    assert gcd(codecs.cases, STEP) == 1


def test_lengths_and_counts_of_a_message_are_found_where_they_are() -> None:
    codec = request_codec(ApiKey.METADATA, 12)
    topic = MetadataRequestTopic(topic_id=bytes(16), name="ab")
    data = b"".join(codec.encode(MetadataRequest(topics=[topic])))
    found = [(each.start, each.stop) for each in length_fields(codec, data)]
    # The array, the name, the topic's tagged fields and those of the message.
    assert found == [(0, 1), (17, 18), (20, 21), (len(data) - 1, len(data))]


def test_one_command_replays_an_input() -> None:
    replayed = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--target", "compressed", "--input", "5"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=120,
    )
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout.endswith("all laws hold\n")


def test_a_session_does_not_pay_for_the_garbage_of_those_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Freeing it may take longer than a request."""
    left = [2 * WORK_MS_MAX * slowness()]
    monkeypatch.setattr(work.gc, "collect", left.clear)
    check_steps(lambda: {"request 0": sum(left)})


def test_a_session_whose_step_takes_too_long_each_time_breaks_the_law() -> None:
    with pytest.raises(Broken, match="ms of work: request 1"):
        check_steps(lambda: {"request 0": 1.0, "request 1": 9 * WORK_MS_MAX * slowness()})
