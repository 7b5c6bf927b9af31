from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.protocol.records.vectors import TRANSACTIONAL_BATCH

REQUEST = "000000110012000300000001000163000278023100"


@pytest.mark.parametrize(
    "digits",
    [REQUEST, REQUEST.upper(), f"0x{REQUEST}", "00 00:00,11 " + REQUEST[8:]],
)
def test_digits_are_taken_as_people_write_them(run: Run, digits: str):
    result = run("decode", digits)
    assert result.stdout.startswith("API_VERSIONS request v3, 21 bytes\n")
    assert "client_software_name     'x'" in result.stdout


def test_a_file_holds_bytes_or_digits(run: Run, tmp_path: Path):
    raw, digits = tmp_path / "raw", tmp_path / "digits"
    raw.write_bytes(TRANSACTIONAL_BATCH)
    digits.write_text(TRANSACTIONAL_BATCH.hex() + "\n")
    assert run("decode", raw).stdout == run("decode", digits).stdout
    assert run("decode", raw).stdout.startswith("record batches, 86 bytes\n")


def test_standard_input_is_read_too(run: Run):
    assert run("decode", "-", stdin=bytes.fromhex(REQUEST)).stdout == run("decode", REQUEST).stdout


def test_a_response_needs_to_be_told_which(run: Run):
    result = run("decode", "00000001 0000 00000000 00000000", "--as", "response ApiVersions 1")
    assert result.stdout.startswith("API_VERSIONS response v1, 14 bytes\n")


def test_json_has_a_span_for_each_field(run: Run):
    shown = json.loads(run("decode", REQUEST, "--json").stdout)
    assert shown["whole"] is True
    assert shown["fields"][1] == {
        "start": 4,
        "end": 6,
        "path": "api_key",
        "text": "18 API_VERSIONS",
        "wrong": False,
    }
    cut = json.loads(run("decode", REQUEST[:-4], "--as", "request", "--json").stdout)
    assert cut["whole"] is False
    assert any(field["wrong"] for field in cut["fields"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["123"], "odd number of hexadecimal digits: 3"),
        (["nosuchfile"], "'nosuchfile' is neither hexadecimal nor a file"),
        (["\udcff"], "'\\udcff' is neither hexadecimal nor a file"),
        ([""], "no bytes to decode"),
        ([REQUEST, "--as", "poem"], "hint 'poem'; it may be request"),
        ([REQUEST, "--as", "response Nosuch 1"], "no API is called 'Nosuch'"),
    ],
)
def test_what_cannot_be_decoded_is_wrong_usage(run: Run, arguments: list[str], reason: str):
    result = run("decode", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_very_long_digits_are_no_file_name(run: Run):
    assert run("decode", "00" * 5000).exit_code == 0
