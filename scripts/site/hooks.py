# SPDX-License-Identifier: Apache-2.0
"""MkDocs' hooks for the documentation site: pages that lie outside of docs/, sources that are linked, GitHub's Markdown."""

from __future__ import annotations

import pathlib
import posixpath
import sys
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import repository

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {".c": "c", ".cpp": "cpp", ".h": "cpp", ".def": "cpp", ".py": "python", ".sh": "sh", ".toml": "toml"}
_path_of: dict[str, str] = {}  # the repository's path of each page of the site


def on_config(config: Any) -> Any:
    config.mdx_configs.setdefault("toc", {})["slugify"] = repository.slug
    return config


def on_files(files: Files, config: Any) -> Files:
    for path, place in repository.OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text()))
        _path_of[place] = path
    for file in files.documentation_pages():
        _path_of.setdefault(file.src_uri, "docs/" + file.src_uri)
    sources: set[str] = set()
    for path in list(_path_of.values()):
        for link in repository.links_of((ROOT / path).read_text()):
            target, _ = repository.target_of(path, link)
            if repository.place_of(target).startswith("source/") and (ROOT / target).exists():
                sources.add(target)
    for path in sorted(sources):
        file = File.generated(config, repository.place_of(path), content=_shown(path))
        files.append(file)
        _path_of[file.src_uri] = path
    return files


def _shown(path: str) -> str:
    """A page that shows a source, or lists a folder. The search leaves it out."""
    head = (
        f"---\nsearch:\n  exclude: true\n---\n# {posixpath.basename(path)}\n\n`{path}`, as it is in the repository\n\n"
    )
    if (ROOT / path).is_dir():
        names = sorted(one.relative_to(ROOT).as_posix() for one in (ROOT / path).rglob("*") if one.is_file())
        return head + "\n".join(f"- `{name}`" for name in names) + "\n"
    text = (ROOT / path).read_text()
    return f"{head}`````{LANGUAGES.get(pathlib.Path(path).suffix, 'text')}\n{text}\n`````\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = page.file.src_uri
    path = _path_of[here]
    if here.startswith("source/"):
        return markdown

    if repository.RECORD.match(here):
        page.meta["search"] = {"exclude": True}
    elif not repository.INSIDE.match(here):
        page.meta["search"] = {"boost": 2}

    def rewrite(link: str) -> str:
        target, anchor = repository.target_of(path, link)
        if not target or link.startswith("#"):
            return link
        to = posixpath.relpath(repository.place_of(target), posixpath.dirname(here) or ".")
        return f"{to}#{anchor}" if anchor else to

    return repository.for_mkdocs(markdown, rewrite)
