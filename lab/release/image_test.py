#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the image of scripts/release/image.sh and runs `cuslice demo` in it:  image_test.py SOURCE CMAKE BUILD

Debian's image comes from a registry, which a test asks nothing of: the image is built on a few programs of this machine
and the libraries that they need.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE, CMAKE, BUILD = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
del sys.argv[1:4]
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "scripts/release"), str(SOURCE / "tests")]
import changelog  # noqa: E402
import folders  # noqa: E402

SCRIPT = SOURCE / "scripts/release/image.sh"
PODMAN = shutil.which("podman")
RUNC = shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
# Programs of the scripts that install onto a node.
PROGRAMS = ("sh", "chmod", "cp", "ln", "mkdir", "mv", "rm")
BASE = "localhost/cuslice-test-base:1"
VERSION = "1.2.3"


def script(*words, **environment):
    command = [SCRIPT, *words]
    return subprocess.run(command, env={**os.environ, **environment}, text=True, capture_output=True)


class CommandLine(unittest.TestCase):
    def test_what_is_no_tarball_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            wrong = pathlib.Path(folder, "cuslice.zip")
            wrong.write_text("")
            for words, code, reason in (
                ([], 64, "a release's tarball is needed"),
                (["--root", "x", wrong], 64, "--root is none of --base, --archive"),
                ([wrong.with_name("none.tar.gz")], 66, "no such file; scripts/release.sh makes it"),
                ([wrong], 64, "isn't called as a release's tarball is"),
            ):
                done = script(*words)
                self.assertEqual((done.returncode, done.stdout), (code, ""))
                self.assertIn(reason, done.stderr)

    def test_one_line_says_what_builds_images(self):
        with tempfile.TemporaryDirectory() as folder:
            tarball = pathlib.Path(folder, "cuslice-1.2.3-linux-x86_64.tar.gz")
            tarball.write_text("")
            tools = pathlib.Path(folder, "bin")
            tools.mkdir()
            for name in ("bash", "dirname", "basename", "sed"):
                (tools / name).symlink_to(shutil.which(name))
            done = script(tarball, PATH=str(tools))
            self.assertEqual(
                (done.returncode, done.stderr), (69, "image: buildah or podman is needed: apt-get install buildah\n")
            )


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PODMAN or not RUNC or os.geteuid() != 0:
            raise unittest.SkipTest("needs podman and runc, and root")
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(folders.remove, cls.folder)
        (cls.folder / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{cls.folder}/graph"\nrunroot = "{cls.folder}/run"\n'
        )
        # podman alone, so that image.sh takes no buildah with another storage.
        cls.environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(cls.folder / "storage.conf")}
        root = cls.folder / "root"
        for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr/local/bin"):
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        programs = [shutil.which(name) for name in PROGRAMS]
        for program in programs:
            shutil.copy(program, root / "bin")
        product = [BUILD / "bin/cuslice", BUILD / "lib/cuslice/cuslice-demo", *(BUILD / "lib/cuslice").glob("**/*.so*")]
        for program in (*programs, *product):
            needed = subprocess.run(["ldd", program], text=True, capture_output=True).stdout
            for path in re.findall(r"(/\S+) \(0x", needed):
                if BUILD in pathlib.Path(path).parents:
                    continue
                (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, root / path[1:])
        subprocess.run(["tar", "-C", root, "-cf", cls.folder / "root.tar", "."], check=True)
        done = cls.podman("import", cls.folder / "root.tar", BASE)
        probe = cls.run_in(BASE, "/bin/sh", "-c", ":") if done.returncode == 0 else done
        if probe.returncode != 0:
            raise unittest.SkipTest(f"podman can make no container here: {(probe.stderr.splitlines() or ['?'])[-1]}")
        cls.build()

    @classmethod
    def podman(cls, *words):
        command = [PODMAN, "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", RUNC, *words]
        return subprocess.run(command, env=cls.environment, stdin=subprocess.DEVNULL, text=True, capture_output=True)

    @classmethod
    def run_in(cls, image, *words, options=()):
        limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--security-opt", "seccomp=unconfined"]
        return cls.podman("run", "--rm", "--network", "none", *limits, *options, image, *words)

    @classmethod
    def build(cls):
        tree = cls.folder / f"cuslice-{VERSION}-linux-{platform.machine()}"
        install = [CMAKE, "--install", BUILD, "--prefix", tree, "--strip"]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
        tarball = cls.folder / f"{tree.name}.tar.gz"
        subprocess.run(["tar", "-C", cls.folder, "-czf", tarball, tree.name], check=True)
        cls.archive = cls.folder / "image.tar"
        done = subprocess.run(
            [SCRIPT, "--base", BASE, "--archive", cls.archive, tarball],
            env=cls.environment,
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def test_the_demonstration_runs_in_it(self):
        for tag in (VERSION, "latest"):
            done = self.run_in(f"localhost/cuslice:{tag}", "demo", "--fake", "laptop-2g", "--limit", "512MiB")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("the next one: CUDA_ERROR_OUT_OF_MEMORY", done.stdout)

    def test_it_says_what_it_is(self):
        listed = self.podman("image", "inspect", "--format", "{{json .Labels}}", f"localhost/cuslice:{VERSION}").stdout
        self.assertIn(f'"org.opencontainers.image.version":"{VERSION}"', listed)
        self.assertIn('"org.opencontainers.image.licenses":"Apache-2.0"', listed)
        self.assertIn("cuslice: a slice of a GPU", self.run_in(f"localhost/cuslice:{VERSION}").stdout)

    def test_it_installs_onto_a_node(self):
        node = self.folder / "node"
        node.mkdir()
        options = ["--volume", f"{node}:/node", "--entrypoint", "cuslice-install", "--read-only"]
        words = ["/opt/cuslice", "/node/opt/cuslice", "/node/run/cuslice"]
        done = self.run_in(f"localhost/cuslice:{VERSION}", *words, options=options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue((node / "opt/cuslice/current/lib/cuslice/libcuslice.so").is_file())
        self.assertEqual((node / "run/cuslice").stat().st_mode & 0o7777, 0o1777)

    def test_the_archive_can_be_loaded_where_the_image_is_not(self):
        with tarfile.open(self.archive) as archive:
            self.assertLessEqual({"oci-layout", "index.json"}, set(archive.getnames()))
        self.assertEqual(self.podman("rmi", "--force", "--all").returncode, 0)
        self.addCleanup(type(self).build)
        self.addCleanup(self.podman, "import", self.folder / "root.tar", BASE)
        loaded = self.podman("load", "-i", self.archive)
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        self.assertIn(f"cuslice {changelog.version()}\n", self.run_in(f"cuslice:{VERSION}", "version").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
