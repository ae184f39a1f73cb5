#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the documents against the sources:  check_docs.py ROOT

- docs/coverage.md has a row for each file of hooks, and says of no function what isn't so;
- docs/images/ has the pictures that its draw.py draws;
- every relative link leads to a file, and to a heading if it names one;
- docs/README.md has a list of three to six pages for each reader, and every page for users is in one of them;
- docs/fake-gpu.md names every key of a fake GPU's file, every profile, and every variable of the fake GPU;
- docs/troubleshooting.md names every finding of doctor's, and no others, and quotes messages as the sources have them;
- every variable CUSLICE_… that a source names is in a document;
- every option in a cuslice command of any document exists;
- CHANGELOG.md says of the next version what a user notices: an entry a line, on two screens;
- docs/stability.md names every heading of settings and every command once, and the formats that files have;
- every file and folder that docs/architecture.md, docs/design/ and the results of benchmarks and mutants name exists,
  and so does each function in the walks of an allocation, in its file;
- README.zh-CN.md has the links, the commands and the rows of README.md, and so has each other translation those of its page;
- no line is longer than 100 columns, but rows of tables, output of programs, what is generated, and Chinese, in which a
  line break would be shown as a space.
"""
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import list_functions

FAKE = ROOT / "fake"
TRANSLATIONS = [ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.zh-CN.md"))]
MOST_COLUMNS = 100
MOST_UNRELEASED = 100
GROUPS = "Added", "Changed", "Fixed", "Removed"
problems = []


def documents():
    return [ROOT / "README.md", TRANSLATIONS[0], *sorted((ROOT / "docs").rglob("*.md"))]


def prose(text):
    """Without blocks of code, in which brackets are no links."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(path):
    """The headings of a document as links name them."""
    headings = re.findall(r"^#+ (.*)$", prose(path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def check_pictures():
    run = subprocess.run([sys.executable, ROOT / "docs/images/draw.py", "--check"], capture_output=True, text=True)
    if run.returncode:
        problems.append(run.stdout + run.stderr.strip())


def base(symbol):
    """cuMemcpy_v2_ptds → cuMemcpy"""
    return re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", symbol)


def check_coverage():
    """The rows of docs/coverage.md name functions, and those of the first two tables link to the files that hook them."""
    all_of, routes = collections.defaultdict(set), collections.defaultdict(set)
    for one in list_functions.functions():
        all_of[one.file].add(base(one.symbol))
        routes[base(one.symbol)].add(one.route)
    passing = all_of.pop("", set())
    problems.extend(f"docs/coverage.md: not all forms of {name} are hooked"
                    for name, has in sorted(routes.items()) if "hook" in has and len(has) > 1)
    explained = collections.Counter()
    for row in re.findall(r"^\|(.*)\|$", (ROOT / "docs/coverage.md").read_text(), re.M):
        files = re.findall(r"\]\(\.\./(shim/driver/\S+)\)", row)
        explained.update(files)
        there = set().union(*(all_of[file] for file in files)) if files else passing
        names = re.findall(r"`(cu[A-Z][\w*]*)`", row)
        problems.extend(f"docs/coverage.md: {name} is not of {' or '.join(files) or 'those that pass through'}"
                        for name in names if not fnmatch.filter(there, name))
    problems.extend(f"docs/coverage.md: {explained[file]} rows link to {file}, not one"
                    for file in sorted(all_of) if explained[file] != 1)


def check_links():
    for document in documents():
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = document.parent / name if name else document
            where = f"{document.relative_to(ROOT)}: [{target}]"
            if not path.exists():
                problems.append(f"{where} leads nowhere")
            elif anchor and anchor not in anchors(path):
                problems.append(f"{where} names no heading there")


def check_index():
    index = ROOT / "docs/README.md"
    text = index.read_text()
    for reader, pages in re.findall(r"^## ([^\n]*)(.*?)(?=^## |\Z)", text, re.M | re.S):
        entries = re.findall(r"^\d\. \[", pages, re.M)
        if not 3 <= len(entries) <= 6:
            problems.append(f"docs/README.md: {reader}: {len(entries)} pages, not three to six")
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", text)}
    pages = {page for folder in ("docs", "docs/schedulers", "docs/tutorials") for page in (ROOT / folder).glob("*.md")} - {index}
    problems.extend(f"docs/README.md does not link to {page.relative_to(ROOT)}" for page in sorted(pages - linked))


def check_fake_gpu():
    text = (ROOT / "docs/fake-gpu.md").read_text()
    kinds = "Profile|Copies|Uuid|Pci|Text|Brand|Size|Capability|Count|Flag|Identity|Instances"
    keys = re.findall(rf'\{{"([a-z0-9-]+)",\s*(?:{kinds})\b', (FAKE / "spec/keys.cpp").read_text())
    keys += re.findall(r'\{"([a-z-]+)",\s*(?:Version|Duration|Word|Number|Flag)\b', (FAKE / "spec/driver_spec.cpp").read_text())
    profiles = [path.stem for path in (FAKE / "profiles").glob("*.toml")]
    sources = "".join(path.read_text() for path in FAKE.rglob("*.cpp"))
    variables = set(re.findall(r'"(CUSLICE_FAKE[A-Z_]*)', sources))
    for what, names in ("key", keys), ("profile", profiles), ("variable", variables):
        if not names:
            problems.append(f"no {what} was found in the fake GPU's sources: this check is blind")
        missing = (name for name in sorted(names) if f"`{name}`" not in text)
        problems.extend(f"docs/fake-gpu.md does not name the {what} {name}" for name in missing)


def check_troubleshooting():
    text = (ROOT / "docs/troubleshooting.md").read_text()
    doctor = "".join(path.read_text() for path in (ROOT / "cli/doctor").glob("*.cpp"))
    names = set(re.findall(r'(?:problem|warning)\(\s*"([a-z-]+)"|Grade::(?:warning|problem),\s*"([a-z-]+)"', doctor))
    names = {one or other for one, other in names}
    rows = re.findall(r"^\| ((?:`[a-z-]+`(?:, )?)+) \|", text, re.M)
    told = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    if not names:
        problems.append("no finding was found in cli/doctor: this check is blind")
    problems.extend(f"docs/troubleshooting.md does not name the finding {name}" for name in sorted(names - told))
    problems.extend(f"docs/troubleshooting.md: doctor has no finding {name}" for name in sorted(told - names))
    sources = "".join(path.read_text() for folder in ("config", "policy", "virtual_gpu", "shim", "cli", "fake")
                      for path in (ROOT / folder).rglob("*") if path.suffix in (".cpp", ".h"))
    sources = re.sub(r'"\s*"', "", sources)
    messages = re.search(r"^## By message\n(.*?)^## ", text, re.M | re.S)
    quoted = re.findall(r"^\| `(.*?)`.* \|$", messages[1] if messages else "", re.M)
    if not quoted:
        problems.append("docs/troubleshooting.md quotes no message: this check is blind")
    for message in quoted:
        if message.startswith(("ERROR: ld.so", "ASan")):  # others' messages
            continue
        part = max((piece.strip() for piece in re.split(r"…|cuslice: |\d[\w.]*( [GM]iB)?", message) if piece), key=len)
        if part not in sources:
            problems.append(f"docs/troubleshooting.md: no source has the message {part}")


def check_variables():
    named = set()
    for folder in "config", "policy", "virtual_gpu", "shim", "cli":
        for source in (ROOT / folder).rglob("*"):
            if source.suffix in (".cpp", ".h", ".def"):
                named |= set(re.findall(r'"(CUSLICE_[A-Z][A-Z_]*)[="]', source.read_text()))
    named |= {"CUSLICE_" + name.upper().replace("-", "_") for name in settings_of_rows()}
    if len(named) < 2:
        problems.append("no variable was found in the sources: this check is blind")
    text = "".join(document.read_text() for document in documents())
    for name in sorted(named):
        if not re.search(rf"\b{name}\b", text):
            problems.append(f"no document names the variable {name}")


def settings_of_rows():
    return set(re.findall(r'\.name = "([a-z][a-z-]*)"', (ROOT / "config/key.cpp").read_text()))


def check_options():
    words = settings_of_rows() | {"help", "help-all", "version"}
    words |= set(re.findall(r'^    \{of\([^)]*\),\s*"([a-z-]+)"', (ROOT / "cli/settings/own_options.cpp").read_text(), re.M))
    found = 0
    for document in documents():
        for line in re.findall(r"cuslice (?:run|devices|config|doctor)\b[^`\n]*", document.read_text()):
            for option in re.findall(r"--([a-z][a-z-]*)", line.split(" -- ")[0]):
                found += 1
                if option not in words:
                    problems.append(f"{document.relative_to(ROOT)}: `{line.strip()}`: there is no option --{option}")
    if not found:
        problems.append("no cuslice command was found in the documents: this check is blind")


def check_stability():
    """Each heading of settings and each command is promised, or said to be experimental; and formats are those of the sources.

    A setting is promised unless a row of the second table names it, so that none is both, and a name is one that there is.
    """
    text = (ROOT / "docs/stability.md").read_text()
    core, experimental = (collections.Counter(re.findall(r"`([a-z][a-z-]*)`", "\n".join(
        line for line in section.splitlines() if line.startswith("|")))) for section in text.split("\n## ")[1:3])
    settings = settings_of_rows()
    commands = set(re.findall(r"^  cuslice ([a-z]+)", (ROOT / "cli/settings/help.cpp").read_text(), re.M))
    headings = re.findall(r'"([^"]+)"', re.search(r"kHeadings\[\] = \{(.*?)\}",
                                                  (ROOT / "cli/settings/help_options.cpp").read_text())[1])
    if not settings or not commands or not headings:
        problems.append("settings or commands were not found in the sources: this check is blind")
    for name in sorted((settings | commands | set(core) | set(experimental))):
        # `config` is a command and a setting.
        both = name in settings and name in commands
        most = 2 if both else 1
        least = (name in commands) + both
        told = core[name] + experimental[name]
        if name not in settings | commands:
            problems.append(f"docs/stability.md names {name}, which is neither a setting nor a command")
        elif not least <= told <= most:
            problems.append(f"docs/stability.md names {name} {told} times, not {most}")
    for heading in headings:
        if text.count(f"| {heading}: ") != 1:
            problems.append(f"docs/stability.md doesn't say once what holds for the settings under {heading}")
    for what, file, pattern in (
        ("host ledger", "policy/ledger/layout.h", r"kVersion = (\d+)"),
        ("figures for `cuslice stats`", "policy/stats/layout.h", r"kVersion = (\d+)"),
        ("a fake machine's accounting", "fake/books/layout.h", r"kBooksVersion = (\d+)"),
    ):
        number = re.search(pattern, (ROOT / file).read_text())
        if not number or f"| {what} | {number[1]} |" not in text:
            problems.append(f"docs/stability.md has another format of {what} than {file}")


def check_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    lines = section[1].strip().splitlines() if section else []
    if len(lines) > MOST_UNRELEASED:
        problems.append(f"CHANGELOG.md: {len(lines)} lines are unreleased, at most {MOST_UNRELEASED}: history is in git")
    groups = re.findall(r"^### (.*)", "\n".join(lines), re.M)
    problems.extend(f"CHANGELOG.md: {group} is none of {', '.join(GROUPS)}" for group in groups if group not in GROUPS)
    problems.extend(f"CHANGELOG.md: an entry has more than one line: {line.strip()}"
                    for line in lines if line.startswith(" "))


def check_paths():
    """`a/b.h` and `a/b/` are paths of this repository, or of what is installed and built."""
    folders = "docs/design", "docs/results/performance", "docs/results/tests"
    pages = sorted(page for name in folders for page in (ROOT / name).glob("*.md"))
    documents = [ROOT / "docs/architecture.md", *pages]
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "build"}
    found = 0
    for document in documents:
        for path in re.findall(r"`([\w./-]+/[\w.-]*)`", prose(document.read_text())):
            if path.split("/")[0] not in folders:
                continue
            found += 1
            there = (ROOT / path).is_dir() or (ROOT / path).is_file()
            # A component is named without its ending: a header and its .cpp.
            if not there and "." not in path.split("/")[-1]:
                there = (ROOT / f"{path}.h").is_file()
            if not there:
                problems.append(f"{document.relative_to(ROOT)}: there is no {path}")
    if not found:
        problems.append("no path was found in the documents: this check is blind")


def check_walks():
    """The lists ```walk NAME of docs/architecture.md: a line is `file: function`, `driver: function` or `beside: file…`.

    That they are what is really called, tests/walks/ finds out.
    """
    text = (ROOT / "docs/architecture.md").read_text()
    walks = re.findall(r"^```walk (\S+)\n(.*?)^```", text, re.M | re.S)
    for name, stops in walks:
        for stop in stops.splitlines():
            where = f"docs/architecture.md: the walk {name}: {stop}"
            path, _, function = stop.partition(": ")
            if path == "driver":
                continue
            if path == "beside":
                missing = [file for file in function.split() if not (ROOT / file).is_file()]
                problems.extend(f"{where}: there is no {file}" for file in missing)
                continue
            if not function or not (ROOT / path).is_file():
                problems.append(f"{where}: there is no such file")
            elif not re.search(rf"\b(CUSLICE_HOOK\()?{function.split('::')[-1]}[(,]", (ROOT / path).read_text()):
                problems.append(f"{where}: there is no such function in it")
    if not walks:
        problems.append("docs/architecture.md has no walk of an allocation: this check is blind")


def check_translations():
    """A section that was added to a page, or changed in what it links or runs, and not translated."""
    def parts(path, own):
        text = path.read_text()
        blocks = re.findall(r"^```.*?^```", text, re.M | re.S)
        return {
            # To a heading of its own, a page links in its own language, and so it may to a page that is translated.
            "links": sorted(link.replace(".zh-CN", "") for link in re.findall(r"\]\(([^)\s]+)\)", prose(text)) if not re.match(own, link)),
            "commands": [re.sub(r"\s+# .*", "", line) for block in blocks for line in block.split("\n")],
            "headings": [len(mark) for mark in re.findall("^(#+) ", prose(text), re.M)],
            "rows": [row.count("|") for row in re.findall(r"^\|.*\|$", text, re.M)],
        }  # fmt: skip

    for translation in TRANSLATIONS:
        page = translation.with_name(translation.name.replace(".zh-CN", ""))
        own = f"#|{re.escape(page.stem)}"
        original, translated = parts(page, own), parts(translation, own)
        problems.extend(f"{translation.name} has other {what} than {page.name}: {translated[what]}, not {original[what]}"
                        for what in original if original[what] != translated[what])


def lines_to_measure(document):
    """Numbered: no rows of tables, no blocks of code without a language, which show output, nothing generated."""
    language = None
    generated = False
    for number, line in enumerate(document.read_text().split("\n"), 1):
        if fence := re.match(r"\s*```(.*)", line):
            language = fence[1] if language is None else None
            continue
        if line.startswith("<!-- generated"):
            generated = "begin" in line
        if not (generated or language == "" or line.lstrip().startswith("|")):
            yield number, line


def is_record(document):
    """What scripts/gpu_check.sh, or a terminal, showed, as it stands."""
    return document.parent in (ROOT / "docs/results", ROOT / "docs/results/hardware") and document.name != "README.md"


def check_widths():
    more = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    for document in [*documents(), *more]:
        if document in TRANSLATIONS or is_record(document):
            continue
        for number, line in lines_to_measure(document):
            if len(line) > MOST_COLUMNS:
                where = f"{document.relative_to(ROOT)}:{number}"
                problems.append(f"{where}: {len(line)} columns, at most {MOST_COLUMNS}")


for check in (check_pictures, check_coverage, check_links, check_index, check_fake_gpu, check_troubleshooting,
              check_variables, check_options, check_stability, check_changelog, check_paths, check_walks,
              check_translations, check_widths):
    check()
print("\n".join(problems) or f"{len(documents())} documents agree with the sources")
sys.exit(bool(problems))
