"""Write `constraints.txt` beside this file: the exact versions of a fresh resolution of `.[dev]`.

The file holds names and versions only, so that it serves any index or mirror. Build tools are
pinned too: pip applies `PIP_CONSTRAINT` to its isolated build environments as well.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADER = """\
# The versions that the tests ran with. Written by `make lock`; not edited by hand.
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True, clear=True)
        python = Path(scratch) / "bin" / "python"
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--editable", f"{HERE.parent}[dev]"], check=True)
        frozen = subprocess.run(
            [*pip, "freeze", "--all", "--exclude-editable", "--exclude", "pip"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    pins = sorted(line for line in frozen.splitlines() if "==" in line and " @ " not in line)
    (HERE / "constraints.txt").write_text(HEADER + "\n".join(pins) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(pins)} versions pinned\n")


if __name__ == "__main__":
    main()
