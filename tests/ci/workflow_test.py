#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of the workflows in .github and in docs/ci.md, and of the action.

  workflow_test.py SOURCE CMAKE BUILD

In place of a runner: a copy of the sources, a Python of its own, and a wheel of the build. Actions of others are not
run, nor what builds for minutes: the job that makes a wheel, and of a release the builds, in whose place stand-ins make
files of the same names. Needs PyYAML, pytest and scikit-build-core, which scripts/setup.sh puts into build/pytest; 77,
skipped, without them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv

SOURCE, CMAKE, BUILD = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
TOOLS = SOURCE / "build/pytest"
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "scripts/release"), str(SOURCE / "tests"), *map(str, TOOLS.glob("lib/python3*/site-packages"))]
import changelog  # noqa: E402
import folders  # noqa: E402

try:
    import hatch_fancy_pypi_readme  # noqa: F401
    import pytest  # noqa: F401
    import scikit_build_core  # noqa: F401
    import xdist  # noqa: F401
    import yaml
except ImportError as missing:
    print(f"SKIPPED: {missing}: scripts/setup.sh tests")
    sys.exit(77)


class Runner:
    """What a machine of GitHub's does with the steps of a job."""

    def __init__(self, folder, wheel_file):
        self.folder, self.wheel = folder, wheel_file
        self.work = folder / "work"
        self.environment = {
            "HOME": str(folder),
            "PATH": "/usr/bin:/bin",
            "RUNNER_TEMP": str(folder),
            "CUSLICE_FAKE_DIR": str(folder / "machines"),
            # Everything that the steps install is here already.
            "PIP_NO_INDEX": "1",
        }
        self.ran, self.used = [], []

    def checkout(self, _):
        ignored = shutil.ignore_patterns("__pycache__")
        for name in (".github", "docs", "lab", "scripts", "tests"):
            shutil.copytree(SOURCE / name, self.work / name, ignore=ignored)

    def setup_python(self, _):
        place = self.folder / "python"
        venv.create(place, with_pip=True)
        (site,) = place.glob("lib/python3*/site-packages")
        (site / "tools.pth").write_text("\n".join(map(str, TOOLS.glob("lib/python3*/site-packages"))))
        self.environment["PATH"] = f"{place}/bin:{self.environment['PATH']}"

    def download_artifact(self, _):
        shutil.copy(self.wheel, self.work)

    def own_action(self, inputs):
        self.action(self.work, inputs)

    def action(self, tree, inputs):
        action = yaml.safe_load((tree / ".github/actions/setup/action.yml").read_text())
        unknown = set(inputs) - set(action["inputs"])
        assert not unknown, f"the action has no inputs {unknown}"
        given = {name: inputs.get(name, one.get("default")) for name, one in action["inputs"].items()}
        assert None not in given.values(), "an input is missing"
        values = {f"inputs.{name}": value for name, value in given.items()}
        assert action["runs"]["using"] == "composite"
        for step in action["runs"]["steps"]:
            assert "shell" in step, "GitHub wants a shell for each step of an action"
            values.update(self.step(step, values))
        return {name: self.filled(one["value"], values) for name, one in action["outputs"].items()}

    @staticmethod
    def filled(text, values):
        return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: str(values[found.group(1)]), text)

    def step(self, step, values):
        """The outputs of a step, as expressions name them."""
        if "uses" in step:
            self.used.append(step["uses"])
            name = step["uses"].partition("@")[0]
            known = {
                "actions/checkout": self.checkout,
                "actions/setup-python": self.setup_python,
                "actions/download-artifact": self.download_artifact,
                "./.github/actions/setup": self.own_action,
            }
            if name.endswith("/cuslice/.github/actions/setup"):
                # Another project's workflow: its wheel is the one of this build.
                self.action(SOURCE, {**step.get("with", {}), "wheel": str(self.wheel)})
            else:
                known[name]({key: self.filled(str(one), values) for key, one in step.get("with", {}).items()})
            return {}
        files = {name: self.folder / name.lower() for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT")}
        for path in files.values():
            path.write_text("")
        own = {name: self.filled(str(text), values) for name, text in step.get("env", {}).items()}
        script = self.filled(step["run"], values)
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail"] if "shell" in step else ["bash", "-e"]
        done = subprocess.run(
            [*shell, "-c", script],
            cwd=self.work,
            env={**self.environment, **{name: str(path) for name, path in files.items()}, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.ran.append((step.get("name", script), done.stdout))
        assert done.returncode == 0, f"{script}\nended with {done.returncode}:\n{done.stdout}"
        pairs = {
            name: dict(line.split("=", 1) for line in files[name].read_text().splitlines())
            for name in ("GITHUB_ENV", "GITHUB_OUTPUT")
        }
        self.environment.update(pairs["GITHUB_ENV"])
        for folder in files["GITHUB_PATH"].read_text().splitlines():
            self.environment["PATH"] = f"{folder}:{self.environment['PATH']}"
        return {f"steps.{step.get('id')}.outputs.{name}": value for name, value in pairs["GITHUB_OUTPUT"].items()}

    def said(self, name):
        return next(text for step, text in self.ran if step == name)


class Workflows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        tree = cls.folder / "tree"
        for component in ([], ["--component", "wheel"]):
            install = [CMAKE, "--install", BUILD, "--prefix", tree, *component]
            subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
            for path in [path for path in tree.rglob("*") if path.is_symlink()]:
                path.unlink()
        # Debuggers' data is most of a build for tests, and takes long to pack.
        programs = [path for path in tree.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        subprocess.run(["strip", "--strip-debug", *programs], check=True)
        environment = {**os.environ, "PYTHON": str(TOOLS / "bin/python3"), "PIP_NO_INDEX": "1"}
        packed = [SOURCE / "scripts/packaging/wheel.sh", tree, cls.folder / "dist"]
        subprocess.run(packed, check=True, env=environment, stdout=subprocess.DEVNULL)
        (cls.wheel,) = (cls.folder / "dist").glob("*.whl")

    @classmethod
    def tearDownClass(cls):
        folders.remove(cls.folder)

    def runner(self):
        folder = self.folder / self.id().rpartition(".")[2]
        folder.mkdir()
        made = Runner(folder, self.wheel)
        made.work.mkdir()
        return made

    def test_the_workflow_of_this_repository(self):
        workflow = yaml.safe_load((SOURCE / ".github/workflows/fake-gpus.yml").read_text())
        runs = [step["run"] for step in workflow["jobs"]["wheel"]["steps"] if "run" in step]
        self.assertEqual(runs, ["python3 -m pip wheel --no-deps --wheel-dir dist ."])
        job = workflow["jobs"]["test"]
        runner = self.runner()
        for step in job["steps"]:
            runner.step(step, {"matrix.gpus": job["strategy"]["matrix"]["gpus"][1]})
        self.assertEqual(runner.environment["CUSLICE_FAKE_MACHINE"], "new")
        self.assertIn("NVIDIA A100-SXM4-40GB", runner.said("What a program would see"))
        self.assertIn("MiB, then 2", runner.said("A program in its slice"))
        self.assertIn("4 passed", runner.said("pytest"))

    def release_runner(self, tag):
        """A runner for a tag, with stand-ins for what builds, for root's rights and for the host."""
        runner = self.runner()
        runner.checkout({})
        for name in ("CHANGELOG.md", "CMakeLists.txt"):
            shutil.copy(SOURCE / name, runner.work)
        stand_ins = runner.folder / "stand-ins"
        stand_ins.mkdir()
        names = [f"cuslice-{changelog.version()}-linux-{machine}.tar.gz" for machine in ("x86_64", "aarch64")]
        made = "".join(f"echo {name} >dist/{name}\n" for name in names)
        for path, text in {
            stand_ins / "sudo": "exit 0",
            stand_ins / "gh": f'printf "%s\\n" "$@" >{runner.folder}/published; cp notes.md {runner.folder}',
            runner.work / "scripts/setup.sh": "exit 0",
            runner.work / "scripts/release.sh": f"mkdir dist\n{made}cd dist && sha256sum -- * >SHA256SUMS",
            runner.work / "scripts/release/image.sh": '[ "$1" = --archive ] && cp "$3" "$2"',
        }.items():
            path.write_text(f"#!/bin/bash\nset -eu\n{text}\n")
            path.chmod(0o755)
        (runner.work / "tests/checks/packages.py").write_text("import sys\nassert sys.argv[1:] == ['.', 'dist']\n")
        runner.environment["PATH"] = f"{stand_ins}:{runner.environment['PATH']}"
        runner.environment["GITHUB_REF_NAME"] = tag
        return runner

    def release_steps(self):
        workflow = yaml.safe_load((SOURCE / ".github/workflows/release.yml").read_text())
        self.assertEqual(workflow[True], {"push": {"tags": ["v*"]}})  # YAML 1.1 reads the key `on` so
        self.assertEqual(workflow["permissions"], {"contents": "write"})
        return workflow["jobs"]["release"]["steps"]

    def test_a_tag_becomes_a_release_with_all_files(self):
        runner = self.release_runner(f"v{changelog.version()}")
        checkout, *steps = self.release_steps()
        self.assertEqual(checkout, {"uses": "actions/checkout@v4"})
        for step in steps:
            runner.step(step, {"github.token": "secret"})
        create, tag, *words = (runner.folder / "published").read_text().splitlines()[1:]
        self.assertEqual((create, tag), ("create", f"v{changelog.version()}"))
        attached = {word.removeprefix("dist/") for word in words if word.startswith("dist/")}
        self.assertEqual(attached, {path.name for path in (runner.work / "dist").iterdir()})
        for ending in ("-oci-x86_64.tar", "-oci-aarch64.tar", "-linux-x86_64.tar.gz", "-linux-aarch64.tar.gz"):
            self.assertIn(f"cuslice-{changelog.version()}{ending}", attached)
        self.assertEqual((runner.folder / "notes.md").read_text(), changelog.section(changelog.version()))

    def test_a_tag_of_another_version_is_no_release(self):
        runner = self.release_runner("v99.0.0")
        with self.assertRaisesRegex(AssertionError, "the tag is v99.0.0, and CMakeLists.txt has "):
            runner.step(self.release_steps()[1], {})

    def test_what_a_release_runs_is_there(self):
        for step in self.release_steps()[1:]:
            for script in re.findall(r"(?:scripts|tests)/[\w/.]+\.(?:sh|py)", step["run"]):
                self.assertTrue((SOURCE / script).is_file(), script)
                called_by_itself = not re.search(rf"python3 {re.escape(script)}", step["run"])
                self.assertTrue(not called_by_itself or os.access(SOURCE / script, os.X_OK), script)

    def test_the_workflows_of_the_documents(self):
        blocks = re.findall(r"^```yaml\n(.*?)^```$", (SOURCE / "docs/ci.md").read_text(), re.S | re.M)
        self.assertTrue(blocks)
        runner = self.runner()
        runner.checkout({})
        (runner.work / "tests/gpu").mkdir()
        shutil.copy(SOURCE / "docs/samples/pytest/test_memory.py", runner.work / "tests/gpu")
        for block in blocks:
            for step in yaml.safe_load(block)["jobs"]["test"]["steps"]:
                if step.get("uses", "").startswith("actions/checkout@"):
                    continue
                runner.step(step, {})
        self.assertTrue(any("4 passed" in said for _, said in runner.ran))

    def test_the_action_where_python_takes_no_packages(self):
        runner = self.runner()
        python = runner.work / "python3"
        python.write_text(f'#!/bin/sh\n[ "$1 $2 $3" != "-m pip install" ] || exit 1\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        outputs = runner.action(SOURCE, {"wheel": str(self.wheel), "python": str(python), "machine": ""})
        launcher = subprocess.run(["bash", "-c", "command -v cuslice"], env=runner.environment, stdout=-1, text=True)
        self.assertEqual(launcher.stdout.strip(), f"{runner.folder}/cuslice/bin/cuslice")
        self.assertRegex(outputs["version"], r"^\d+\.\d+\.\d+")
        self.assertNotIn("CUSLICE_FAKE_MACHINE", runner.environment)


unittest.main(argv=sys.argv[:1])
