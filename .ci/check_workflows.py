# SPDX-License-Identifier: Apache-2.0
"""Check the workflow files with actionlint, a Go module, at a pinned version.

Without Go the check says loudly that it did not run; where SEGPROOF_REQUIRE_ALL is 1 it fails.

Not covered: scripts inside the workflows (no shellcheck is asked for).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"


def main() -> int:
    """Run actionlint and return its exit code; 0 with a loud line where Go is missing."""
    root = Path(__file__).resolve().parent.parent
    workflows = sorted((root / ".github" / "workflows").glob("*.yml"))
    if not workflows:
        print("actionlint: no workflow found", file=sys.stderr)
        return 1
    go = shutil.which("go")
    if go is None:
        print("=== actionlint: not run: go is not on PATH; install Go to run it ===", flush=True)
        return 1 if os.environ.get("SEGPROOF_REQUIRE_ALL") == "1" else 0
    names = [str(path.relative_to(root)) for path in workflows]
    command = [go, "run", ACTIONLINT, "-shellcheck=", "-pyflakes=", *names]
    code = subprocess.run(command, cwd=root, check=False).returncode
    print(f"actionlint: {len(names)} workflows, {'clean' if code == 0 else 'findings'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
