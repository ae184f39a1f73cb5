#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the parts of scripts/release.sh on the build that is here, without the release's compiler.

  test_release.py SOURCE CMAKE BUILD

The build's installation becomes a wheel, pip installs it without an index, and a program is refused in its slice; and
each look at a package, at a tree or at what is in a build has seen a mistake that it is there to find.
"""

import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile

SOURCE, CMAKE, BUILD = sys.argv[1:4]
SOURCE, BUILD = pathlib.Path(SOURCE).resolve(), pathlib.Path(BUILD).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "scripts/release"), str(SOURCE / "tests/checks")]
import changelog  # noqa: E402
import packages  # noqa: E402
import parts  # noqa: E402

# A Python with what makes wheels, which scripts/setup.sh tests brings.
PACKER = SOURCE / "build/pytest/bin/python3"

# Prints True if both names of a library lead to one function.
NAMES = """
import ctypes
def of(library, function):
    return ctypes.cast(getattr(ctypes.CDLL(library), function), ctypes.c_void_p).value
print(of("libcuda.so.1", "cuInit") == of("libcuda.so", "cuInit"),
      of("libnvidia-ml.so.1", "nvmlInit_v2") == of("libnvidia-ml.so", "nvmlInit_v2"))
"""

IN_A_SLICE = """
import cuslice, sys
with cuslice.FakeMachine("2xt4") as machine:
    done = machine.run([sys.executable, "-c", "import cuslice; print(len(cuslice.limit()))"], stdout=-1, text=True)
    print([cuslice.launcher(), int(done.stdout)])
"""
PLUGINS = """
from importlib.metadata import distribution
print([point.value for point in distribution("cuslice").entry_points if point.group == "pytest11"])
"""


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.tree = cls.folder / "tree"
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.tree], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        packages.wrong.clear()

    def without_links(self):
        tree = self.folder / "linkless"
        if not tree.exists():
            shutil.copytree(self.tree, tree, symlinks=True)
            for path in tree.rglob("*"):
                if path.is_symlink():
                    path.unlink()
            subprocess.run(
                [CMAKE, "--install", BUILD, "--prefix", tree, "--component", "wheel"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            # Debugging information is most of a build for tests, and takes long to pack.
            subprocess.run(["strip", "--strip-debug", *packages.objects.elf_files(tree)], check=True)
        return tree

    def packed(self, tree, name, *tags):
        """Runs scripts/packaging/wheel.sh, into a folder of that name."""
        ask = [PACKER, "-c", "import scikit_build_core, hatch_fancy_pypi_readme"]
        if not PACKER.exists() or subprocess.run(ask, capture_output=True).returncode:
            self.skipTest("needs scikit-build-core: scripts/setup.sh tests")
        environment = {**os.environ, "PYTHON": str(PACKER), "PIP_NO_INDEX": "1", "SOURCE_DATE_EPOCH": "1700000000"}
        command = [SOURCE / "scripts/packaging/wheel.sh", tree, self.folder / name, *tags]
        return subprocess.run(command, env=environment, text=True, capture_output=True)

    def made(self, name, machine=platform.machine(), tree=None):
        """A wheel of a tree, by default the build's, marked as a release marks it."""
        platforms = (f"manylinux_2_17_{machine}", f"manylinux2014_{machine}")
        done = self.packed(tree or self.without_links(), name, *(f"py3-none-{tag}" for tag in platforms))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (path,) = (self.folder / name).glob(f"*_{machine}.whl")
        return path

    def test_a_wheel_that_pip_installs_refuses_a_program_past_its_limit(self):
        self.made("index")
        place = self.folder / "venv"
        venv.create(place, with_pip=True)
        python = place / "bin/python3"  # in PATH there need be none
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUSLICE_", "PIP_"))}
        environment["CUSLICE_FAKE_DIR"] = environment["CUSLICE_DIR"] = str(self.folder)

        def run(*command, **also):
            done = subprocess.run(
                [place / "bin" / command[0], *command[1:]],
                env={**environment, **also},
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        run(
            "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
            "--find-links",
            self.folder / "index",
            "cuslice",
        )
        said = run(
            "cuslice",
            "run",
            "--fake",
            "1xt4",
            "--limit",
            "1GiB",
            "--",
            python,
            SOURCE / "lab/release/first_refusal.py",
            "1024",
        )
        self.assertIn("MiB, then 2", said)
        self.assertIn("cuslice: out of memory on GPU 0", said)
        self.assertEqual(run("python", "-c", "import cuslice; print(cuslice.__version__)"), f"{changelog.version()}\n")
        self.assertEqual(run("python", "-m", "cuslice", "--version"), run("cuslice", "--version"))
        # The package finds the launcher that came with it, and pytest the plugin, without a PATH.
        self.assertEqual(run("python", "-c", IN_A_SLICE, PATH="/usr/bin:/bin"), f"['{place}/bin/cuslice', 2]\n")
        self.assertEqual(run("python", "-c", PLUGINS), "['cuslice.pytest_plugin']\n")
        # A wheel can't hold the fake GPU's links. What lends the names instead is the same library, in whichever way
        # it is found.
        self.assertEqual(
            run("cuslice", "run", "--fake", "1xt4", "--limit", "1GiB", "--", python, "-c", NAMES), "True True\n"
        )
        self.assertEqual(run("cuslice", "run", "--fake", "1xt4", "--", python, "-c", NAMES), "True True\n")
        self.assertEqual(run("python", "-c", NAMES, LD_LIBRARY_PATH=f"{place}/lib/cuslice/fake"), "True True\n")
        # The environment's own Python draws recordings, whichever is in PATH. It lacks what comes with cuslice[plot],
        # which a page needs not.
        recording = self.folder / "trace.csv"
        recording.write_text("Time,Action,Pointer,Size\n00:00:00.000000,allocate,0x10,1\n")
        words = [place / "bin/cuslice", "plot", recording]
        drawn = subprocess.run(words, env=environment, text=True, capture_output=True)
        self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
        self.assertIn("<h1>trace.csv</h1>", recording.with_suffix(".html").read_text())
        words += ["-o", self.folder / "trace.svg"]
        drawn = subprocess.run(words, env=environment, text=True, capture_output=True)
        self.assertEqual(drawn.returncode, 69, drawn.stderr)
        self.assertIn(f"vl-convert-python, which {place}/bin/python3 lacks", drawn.stderr)
        metadata = run("python", "-c", "import importlib.metadata as m; print(m.requires('cuslice'))")
        self.assertIn("vl-convert-python", metadata)
        self.assertRegex(metadata, r"extra == .plot.")
        run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "cuslice")
        # Pip would leave the folders below one that has no files of its own.
        self.assertEqual([path for path in place.rglob("*") if "cuslice" in path.name], [])

    def test_a_wheel_has_the_same_bytes_each_time(self):
        self.assertEqual(*(hashlib.sha256(self.made(name).read_bytes()).hexdigest() for name in ("one", "two")))

    def test_a_link_is_not_packed(self):
        done = self.packed(self.tree, "linked")
        self.assertEqual((done.returncode, (self.folder / "linked").exists()), (65, False))
        self.assertRegex(done.stderr, r"^wheel: .*/lib(cuda|nvidia-ml)\.so is a link")

    def test_what_is_no_installation_is_not_packed(self):
        empty = self.folder / "empty"
        empty.mkdir()
        done = self.packed(empty, "of-nothing")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is no installation of cuslice", done.stdout + done.stderr)

    def compiled_for(self, number, name):
        """A tree with no more than the launcher's begin, which says that it is for that processor."""
        tree = self.folder / name
        (tree / "bin").mkdir(parents=True)
        content = bytearray((self.tree / "bin/cuslice").read_bytes()[:4096])
        content[18:20] = number.to_bytes(2, "little")
        (tree / "bin/cuslice").write_bytes(content)
        (tree / "bin/cuslice").chmod(0o755)
        return tree

    def test_pip_takes_the_wheel_of_the_processor_that_it_installs_for(self):
        index = self.folder / "both"
        made = {
            machine: self.made("both", machine, self.compiled_for(number, machine))
            for machine, (_, number, _) in packages.MACHINES.items()
        }
        for machine, path in made.items():
            chosen = self.folder / f"chosen-{machine}"
            words = ["--no-index", "--no-deps", "--only-binary=:all:", "--find-links", index, "--dest", chosen]
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *words]
                + ["--platform", f"manylinux2014_{machine}", "cuslice"],
                check=True,
            )
            self.assertEqual([one.name for one in chosen.iterdir()], [path.name])
            packages.unpacked_wheel(path, self.folder / f"unpacked-{machine}")
            packages.look_at_machine(path, self.folder / f"unpacked-{machine}/bin", machine)
            self.assertEqual([said for said in packages.wrong if "not of pages" not in said], [])

    def test_what_is_for_another_processor_or_smaller_pages_is_found_out(self):
        here = platform.machine()
        other = next(machine for machine in packages.MACHINES if machine != here)
        packages.look_at_machine(self.tree, self.tree, here)
        self.assertEqual(packages.wrong, [])
        packages.look_at_machine(self.tree, self.tree / "bin", other)
        self.assertEqual([said for said in packages.wrong if "not for" in said], [f"tree: cuslice is not for {other}"])
        packages.wrong.clear()
        whole = packages.MACHINES[here]
        packages.MACHINES[here] = (*whole[:2], 1 << 30)
        self.addCleanup(packages.MACHINES.update, {here: whole})
        packages.look_at_machine(self.tree, self.tree / "bin", here)
        self.assertEqual(len(packages.wrong), 1)
        self.assertIn("cuslice: parts lie at multiples of", packages.wrong[0])

    def test_a_table_of_symbols_that_is_not_of_these_files_is_found_out(self):
        here = platform.machine()
        found = packages.newest_symbols(self.tree)
        rows = [f"| `{name}` | {version} | {version} |" for name, version in found.items()]
        packages.look_at_symbols("\n".join(rows), here, self.tree)
        self.assertEqual(packages.wrong, [])
        rows[0] = "| `bin/cuslice` | 2.1 | 2.1 |"
        packages.look_at_symbols("\n".join([*rows[:-1], "| `lib/gone.so` | 2.1 | 2.1 |"]), here, self.tree)
        self.assertEqual(len(packages.wrong), 3, packages.wrong)
        self.assertIn(f"{packages.PAGE}: bin/cuslice on {here}: 2.1, and it is {found['bin/cuslice']}", packages.wrong)
        self.assertIn(f"{packages.PAGE}: lib/gone.so on {here}: 2.1, and it is no file", packages.wrong)

    def test_a_folder_without_all_packages_of_a_processor_is_found_out(self):
        def looked_over(folder):
            command = [sys.executable, SOURCE / "tests/checks/packages.py", SOURCE, folder]
            done = subprocess.run(command, text=True, capture_output=True)
            self.assertEqual(done.returncode, 1)
            return done.stderr

        path = self.made("alone")
        self.assertIn(f"{platform.machine()}: not one of each", looked_over(path.parent))
        path.unlink()
        self.assertIn("there are no packages", looked_over(path.parent))

    def test_a_processor_that_there_is_no_release_for_is_refused(self):
        done = subprocess.run([SOURCE / "scripts/release.sh", "sparc"], text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertEqual(done.stderr, "release: x86_64, aarch64 or all, not sparc\n")

    def test_a_wheel_that_was_changed_is_found_out(self):
        path = self.made("whole")
        packages.LARGEST_WHEEL = 1 << 30  # a build for tests has what debuggers want
        packages.unpacked_wheel(path, self.folder / "whole-tree")
        self.assertEqual(packages.wrong, [])
        changed = self.folder / "changed" / path.name
        changed.parent.mkdir()
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
            for entry in old.infolist():
                content = old.read(entry)
                new.writestr(entry, content + b"\n" if entry.filename.endswith("cuslice.h") else content)
        packages.unpacked_wheel(changed, self.folder / "changed-tree")
        self.assertEqual(len(packages.wrong), 1, packages.wrong)
        self.assertIn("cuslice.h is not as recorded", packages.wrong[0])

    def test_files_that_need_a_newer_c_library_are_found_out(self):
        # The launcher of this build needs that of this machine, or a library of C++ beside it.
        program = self.folder / "newer/lib/cuslice/newer"
        shutil.copytree(self.tree, self.folder / "newer", symlinks=True)
        source = self.folder / "newer.c"
        source.write_text('int open_file(void) __asm__("memfd_create"); int main(void) { return open_file(); }')
        subprocess.run(["cc", source, "-o", program], check=True)
        done = subprocess.run(
            [sys.executable, SOURCE / "tests/checks/objects.py", SOURCE, "--tree", self.folder / "newer"],
            text=True,
            stdout=subprocess.PIPE,
        )
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"newer: needs GLIBC_.*\(2, 27\).*newer than")

    def test_header_libraries_say_their_versions_and_licences(self):
        found = {part.name: part for part in parts.header_libraries(BUILD)}
        self.assertLessEqual({"CLI11", "nlohmann-json", "toml++"}, set(found))
        for name in ("CLI11", "nlohmann-json", "toml++"):
            part = found[name]
            self.assertRegex(part.version, r"^\d+\.\d+\.\d+$")
            self.assertRegex(part.licence, r"^(MIT|BSD-3-Clause)")
            self.assertTrue(part.copyrights, name)
            self.assertIn("permi", part.text, name)
            self.assertIn(f"{name} {part.version}", parts.notices([part]))
        with self.assertRaisesRegex(SystemExit, "which version"):
            parts.version_of("#define CLI11_VERSION_MAJOR 2\n")

    def test_the_bill_lists_every_file_and_what_is_linked_in(self):
        bill = parts.spdx(
            "1.2.3",
            [parts.Part("linked", "1", "MIT", "STATIC_LINK"), parts.Part("used", "2", "MIT", "BUILD_TOOL_OF")],
            self.tree,
        )
        json.dumps(bill)
        self.assertEqual(
            {entry["fileName"] for entry in bill["files"]},
            {
                f"./{path.relative_to(self.tree)}"
                for path in self.tree.rglob("*")
                if path.is_file() and not path.is_symlink()
            },
        )
        self.assertRegex(
            bill["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"], "^[0-9a-f]{40}$"
        )
        identifiers = [entry["SPDXID"] for entry in bill["packages"] + bill["files"]]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        said = {
            (entry["spdxElementId"], entry["relationshipType"], entry["relatedSpdxElement"])
            for entry in bill["relationships"]
        }
        self.assertIn(("SPDXRef-cuslice", "STATIC_LINK", "SPDXRef-linked"), said)
        self.assertIn(("SPDXRef-used", "BUILD_TOOL_OF", "SPDXRef-cuslice"), said)
        self.assertLessEqual(
            {word for one, _, other in said for word in (one, other)} - {"SPDXRef-DOCUMENT"}, set(identifiers)
        )


unittest.main(argv=sys.argv[:1])
