# SPDX-License-Identifier: Apache-2.0
"""The examples of the tutorial and the how-to pages: each is run, and shows what the page says.

The site leads to its other versions.

A block `console` is a session in one directory: a line `$ COMMAND` and what it prints, stderr with
stdout. `...` stands for any text. A block `python` that is followed by a block `text` prints it.
Each command is a process, forked from one that has imported `segproof`.
`PYTHONPATH=tests/support python tests/golden/test_docs_examples.py` writes the present output into
the pages.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from segproof_tests.command_server import serving, write_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "docs" / "tutorial" / "verify-your-first-directory.md",
    ROOT / "docs" / "tutorial" / "a-broken-disk.md",
    ROOT / "docs" / "tutorial" / "find-a-message-by-key.md",
    ROOT / "docs" / "howto" / "check-files-in-ci.md",
    ROOT / "docs" / "howto" / "look-up-an-offset.md",
    ROOT / "docs" / "howto" / "rebuild-indexes.md",
    ROOT / "docs" / "howto" / "show-what-is-in-a-file.md",
    ROOT / "docs" / "howto" / "save-a-damaged-store.md",
]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(
    r"^```python\n((?:(?!```)[^\n]*\n)*)```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def steps(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a session with what each prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def environment(folder: Path, server: Path) -> dict[str, str]:
    """Return an environment in which `segproof` is this interpreter's."""
    script = folder / "bin" / "segproof"
    script.parent.mkdir()
    write_command(script, server)
    path = os.pathsep.join([str(script.parent), str(Path(sys.executable).parent)])
    return {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}


def run(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Return what a command prints on both streams."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def matches(expected: str, actual: str) -> bool:
    """Return whether the output is the expected one, `...` standing for anything."""
    return doctest.OutputChecker().check_output(expected, actual, doctest.ELLIPSIS)


@pytest.fixture(scope="module", name="server")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with serving(tmp_path_factory.mktemp("server") / "socket") as address:
        yield address


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_shows_what_the_commands_print(page: Path, tmp_path: Path, server: Path) -> None:
    """Every command of the page, in its order, prints what stands below it."""
    variables = environment(tmp_path, server)
    text = page.read_text(encoding="utf-8")
    if "demo --copy-to dumps" not in "".join(CONSOLE.findall(text)):
        run(["segproof", "demo", "--copy-to", "dumps"], tmp_path, variables)
    count = 0
    for block in CONSOLE.findall(text):
        for command, expected in steps(block):
            actual = run(["bash", "-c", command], tmp_path, variables)
            assert matches(expected, actual), f"$ {command}\n{actual}"
            count += 1
    for source, expected in PYTHON.findall(text):
        actual = run([sys.executable, "-c", source], tmp_path, variables)
        assert matches(expected, actual), actual
        count += 1
    assert count >= 5


def test_each_page_leads_to_the_published_versions(tmp_path: Path) -> None:
    """The versions are the headings that towncrier writes; the folders lie beside each other."""
    pages = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("*.md", "_build"))
    (pages / "howto").mkdir(exist_ok=True)
    (pages / "index.md").write_text("# Front\n\n```{toctree}\nhowto/page\n```\n")
    (pages / "howto" / "page.md").write_text("# Page\n")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
    titles = [
        settings["title_format"].format(version=one, project_date="2027-01-01")
        for one in ("0.2.0", "0.1.0")
    ]
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n" + "\n\n".join(titles))
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-b",
        "html",
        str(pages),
        str(tmp_path / "site"),
    ]
    subprocess.run(command, check=True)
    for page, up in (("index.html", ".."), ("howto/page.html", "../..")):
        shown = (tmp_path / "site" / page).read_text(encoding="utf-8")
        links = re.findall(r'<details class="versions">.*?</details>', shown, re.DOTALL)[0]
        expected = [f"{up}/{one}/index.html" for one in ("latest", "0.2.0", "0.1.0")]
        assert expected == re.findall(r'href="(.*?)"', links)


def rewrite(page: Path, folder: Path, server: Path) -> None:
    """Put the present output of each command below it."""
    folder.mkdir()
    variables = environment(folder, server)
    text = page.read_text(encoding="utf-8")
    if "demo --copy-to dumps" not in "".join(CONSOLE.findall(text)):
        run(["segproof", "demo", "--copy-to", "dumps"], folder, variables)

    def shown(match: re.Match[str]) -> str:
        lines = []
        for command, expected in steps(match[1]):
            actual = run(["bash", "-c", command], folder, variables)
            kept = expected if expected and matches(expected, actual) else actual
            seconds = re.compile(r"in \d+\.\d s$", re.MULTILINE)
            lines.append(f"$ {command}\n{seconds.sub('in ... s', kept)}")
        return "```console\n" + "".join(lines) + "```"

    page.write_text(CONSOLE.sub(shown, text), encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place, serving(Path(place) / "socket") as address:
        for each in PAGES:
            with tempfile.TemporaryDirectory() as name:
                rewrite(each, Path(name) / "work", address)
