"""What is derived from a declaration follows it: structs, docs and codecs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mockbroker_protocol
from mockbroker_protocol import ApiKey, generate
from mockbroker_protocol.codec import Codec, request_codec
from mockbroker_protocol.declare import INT8, INT64, Field, Message
from mockbroker_protocol.emit import decode_source, encode_source
from mockbroker_protocol.schemas import heartbeat
from mockbroker_protocol.show import show
from mockbroker_protocol.tables import rows

PACKAGE = Path(mockbroker_protocol.__file__).parent
DOCS = Path(__file__).parents[2] / "docs" / "appendix" / "messages.md"


def test_the_committed_structs_and_tables_are_what_the_declarations_say() -> None:
    """Run the generator after changing a declaration."""
    assert generate.main(["--check", "--docs", str(DOCS)]) == 0


def run_generator(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mockbroker_protocol.generate", *arguments],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_changed_declaration_fails_the_check_until_all_is_generated_again(
    tmp_path: Path,
) -> None:
    """In a copy of the package, one field more in Heartbeat: its struct and the docs differ."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "mockbroker_protocol", ignore=ignore)
    docs = tmp_path / "messages.md"
    shutil.copy(DOCS, docs)
    declaration = tmp_path / "mockbroker_protocol" / "schemas" / "heartbeat.py"
    text = declaration.read_text()
    changed = text.replace(
        'Field("member_id", STRING, own_entity=MEMBER_ID),',
        'Field("member_id", STRING, own_entity=MEMBER_ID),\n    Field("mood", INT32),',
    )
    assert changed != text
    declaration.write_text(changed)

    checked = run_generator(tmp_path, "--check", "--docs", str(docs))
    assert checked.returncode == 1
    assert checked.stdout.splitlines() == ["differs: heartbeat.py", "differs: messages.md"]

    assert run_generator(tmp_path, "--docs", str(docs)).returncode == 0
    assert run_generator(tmp_path, "--check", "--docs", str(docs)).returncode == 0
    struct = tmp_path / "mockbroker_protocol" / "messages" / "heartbeat.py"
    assert "    mood: int = 0\n" in struct.read_text()
    assert "| `mood` | int32 |" in docs.read_text()


def test_a_stray_file_among_the_structs_fails_the_check(tmp_path: Path) -> None:
    """A declaration that was removed leaves nothing behind."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "mockbroker_protocol", ignore=ignore)
    stray = tmp_path / "mockbroker_protocol" / "messages" / "old_api.py"
    stray.write_text("")
    assert run_generator(tmp_path, "--check").returncode == 1
    assert run_generator(tmp_path).returncode == 0
    assert not stray.exists()


def heartbeat_codec(*, version: int, **changes: Field) -> Codec:
    fields = [changes.get(field.name, field) for field in heartbeat.REQUEST.shape.fields]
    message = Message("HeartbeatRequest", "0-4", flexible="4+").of(*fields)
    module = type(heartbeat)("mockbroker_protocol.schemas.heartbeat")
    module.REQUEST, module.RESPONSE = message, heartbeat.RESPONSE  # type: ignore[attr-defined]
    return Codec(module, message, version)


@pytest.mark.parametrize(
    "changed",
    [
        Field("generation_id", INT64),
        Field("generation_id", INT8),
        Field("generation_id", INT64, "5+"),
        Field("generation_id", INT64, tag=3),
    ],
)
def test_a_changed_field_changes_the_emitted_codec_and_its_table(changed: Field) -> None:
    """Type, versions and tag all reach the source that is compiled."""
    before, after = (
        request_codec(ApiKey.HEARTBEAT, 4),
        heartbeat_codec(version=4, generation_id=changed),
    )
    assert decode_source(before.tree)[0] != decode_source(after.tree)[0]
    assert encode_source(before.tree)[0] != encode_source(after.tree)[0]
    assert decode_source(before.tree)[0] in show(ApiKey.HEARTBEAT, 4)
    assert list(rows(before.message)) != list(rows(after.message))


def test_shapes_that_request_and_response_name_alike_get_a_prefix() -> None:
    """DescribeTopicPartitions has a cursor in both directions."""
    source = generate.render_all()[PACKAGE / "messages" / "describe_topic_partitions.py"]
    assert "class RequestCursor(" in source
    assert "class ResponseCursor(" in source
    assert "class Cursor(" not in source
