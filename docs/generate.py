# SPDX-License-Identifier: Apache-2.0
"""Write the generated pages: `python docs/generate.py`; with `--check` only say which are stale.

Each module of docs/generators has a function `pages()` that returns the text of its pages by their
path below docs/; a new generator needs nothing but its module.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
# `law_links`, which generators share, and `segproof_tests`, which knows the layers of checks.
sys.path[:0] = [str(DOCS), str(DOCS.parent / "tests" / "support")]


def generated_pages() -> dict[str, str]:
    """Return the text of every generated page by its path below docs/."""
    pages: dict[str, str] = {}
    for path in sorted((DOCS / "generators").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"segproof_docs_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made: dict[str, str] = module.pages()
        if twice := pages.keys() & made.keys():
            raise ValueError(f"{path.name} makes pages that another one made: {sorted(twice)}")
        pages.update(made)
    return pages


def stale_pages(pages: dict[str, str]) -> list[str]:
    """Return the paths of the pages whose file is missing or says something else."""
    return [
        name
        for name, text in pages.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """Write what is stale; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    check = parser.parse_args().check
    pages = generated_pages()
    stale = stale_pages(pages)
    for name in stale:
        print(f"{'stale' if check else 'written'}: docs/{name}")
        if not check:
            (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
            (DOCS / name).write_text(pages[name], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
