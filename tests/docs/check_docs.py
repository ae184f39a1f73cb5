#!/usr/bin/env python3
"""Holds the documents against the sources:  check_docs.py ROOT

- docs/coverage.md is what scripts/generate_coverage.py writes;
- every relative link leads to a file, and to a heading if it names one;
- docs/fake-gpu.md names every key of a fake GPU's file, every profile, and every variable of the fake GPU;
- every variable CUSLICE_… that a source names is in a document;
- every option in a cuslice command of any document exists.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
FAKE = ROOT / "fake"
problems = []


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def prose(text):
    """Without blocks of code, in which brackets are no links."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(path):
    """The headings of a document as links name them."""
    headings = re.findall(r"^#+ (.*)$", prose(path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def check_coverage():
    command = [sys.executable, ROOT / "scripts/generate_coverage.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        problems.append(run.stdout + run.stderr.strip())


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


def check_variables():
    named = set()
    for folder in "config", "policy", "virtual_gpu", "shim", "cli":
        for source in (ROOT / folder).rglob("*"):
            if source.suffix in (".cpp", ".h", ".def"):
                named |= set(re.findall(r'"(CUSLICE_[A-Z][A-Z_]*)[="]', source.read_text()))
    if not named:
        problems.append("no variable was found in the sources: this check is blind")
    text = "".join(document.read_text() for document in documents())
    for name in sorted(named):
        if not re.search(rf"\b{name}\b", text):
            problems.append(f"no document names the variable {name}")


def check_options():
    names = r'\{(?:Key::\w+, )?"([a-z][a-z-]*)"'
    words = set(re.findall(names, (ROOT / "config/key.cpp").read_text()))
    words |= {"help", "version", "json"}
    found = 0
    for document in documents():
        for line in re.findall(r"cuslice (?:run|devices|config)\b[^`\n]*", document.read_text()):
            for option in re.findall(r"--([a-z][a-z-]*)", line.split(" -- ")[0]):
                found += 1
                if option not in words:
                    problems.append(f"{document.relative_to(ROOT)}: `{line.strip()}`: there is no option --{option}")
    if not found:
        problems.append("no cuslice command was found in the documents: this check is blind")


for check in check_coverage, check_links, check_fake_gpu, check_variables, check_options:
    check()
print("\n".join(problems) or f"{len(documents())} documents agree with the sources")
sys.exit(bool(problems))
