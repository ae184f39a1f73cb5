#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs into a folder, moves it, and looks whether it is harmless and works.

  installation.py CMAKE BUILD_FOLDER

ldconfig on its library folder must make no link: one of a borrowed name would make cuslice everybody's libcuda. The header for programs is there, and C. And a program
runs in a slice of a fake GPU from the place to which the tree was moved. Completion scripts, pages of the manual and samples are where they are looked for, and each
link of an installed document leads to a file.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
               cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))):
    assert result == 0, result
print(total.value >> 20)
"""


SHARED = ["bash-completion/completions/cuslice", "zsh/site-functions/_cuslice", "fish/vendor_completions.d/cuslice.fish",
          "man/man1/cuslice.1", "man/man5/cuslice.toml.5", "doc/cuslice/docs/samples/towers/towers_driver.cpp", "doc/cuslice/LICENSE"]


def check_share(share):
    for name in SHARED:
        assert (share / name).stat().st_size, name
    links = 0
    for page in (share / "doc/cuslice").rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            if not re.match(r"[a-z]+:", target):
                links += 1
                assert (page.parent / target).exists(), f"{page.relative_to(share)}: {target} leads nowhere"
    assert links > 100, f"{links} links: this check is blind"


def check_staged(cmake, build, folder, installed):
    """Packagers install below a folder of theirs (DESTDIR): nothing may go elsewhere, or be missing."""
    staged = folder / "staged"
    subprocess.run([cmake, "--install", build, "--prefix", "/opt/cuslice"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DESTDIR": staged})
    files = {path.relative_to(staged) for path in staged.rglob("*") if path.is_file()}
    wanted = {pathlib.Path("opt/cuslice", path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert files == wanted, f"with DESTDIR: {sorted(map(str, files ^ wanted))[:8]}"


def check_samples(installed, environment):
    """The samples of several GPUs start from where they are installed, and see as many GPUs as one is split into."""
    samples = sorted((installed / "lib/cuslice/samples").iterdir())
    assert [sample.name for sample in samples] == ["towers_driver", "towers_runtime12", "towers_runtime13"], samples
    for sample in samples:
        done = subprocess.run([installed / "bin/cuslice", "run", "--fake", "t4", "--split", "0=2", "--", sample],
                              env=environment, text=True, stdout=subprocess.PIPE)
        assert done.returncode == 0 and "Number of devices: 2\n" in done.stdout, (sample, done.returncode, done.stdout)


def main():
    cmake, build = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        first, second = pathlib.Path(folder, "first"), pathlib.Path(folder, "moved")
        subprocess.run([cmake, "--install", build, "--prefix", first], check=True, stdout=subprocess.DEVNULL)
        shutil.move(first, second)

        check_staged(cmake, build, pathlib.Path(folder), second)
        check_share(second / "share")
        header = second / "include/cuslice.h"
        subprocess.run(["cc", "-std=c99", "-pedantic", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", header], check=True)

        before = sorted(second.rglob("*"))
        ldconfig = shutil.which("ldconfig", path=os.environ["PATH"] + ":/sbin:/usr/sbin")
        assert ldconfig, "there is no ldconfig here"
        subprocess.run([ldconfig, "-n", second / "lib"], check=True)
        made = sorted(set(second.rglob("*")) - set(before))
        assert not made, f"ldconfig made {made}"
        # The check can fail: in the folder below, where the names are borrowed, ldconfig does make links.
        subprocess.run([ldconfig, "-n", second / "lib/cuslice"], check=True)
        made = sorted(path.name for path in set(second.rglob("*")) - set(before))
        assert made == ["libcuda.so.1"], f"in the private folder ldconfig made {made}"
        (second / "lib/cuslice/libcuda.so.1").unlink()

        # The tests' own variable, which is none of cuslice's.
        environment = {name: value for name, value in os.environ.items() if name != "CUSLICE_GENUINE_CACHE"}
        environment["CUSLICE_FAKE_DIR"] = folder
        done = subprocess.run([second / "bin/cuslice", "run", "--fake", "t4", "--limit", "1024MiB", "--", sys.executable, "-c", PROGRAM],
                              env=environment, text=True, stdout=subprocess.PIPE)
        assert done.returncode == 0 and done.stdout == "1024\n", (done.returncode, done.stdout)
        check_samples(second, environment)
    print("installed, moved, harmless and at work")


main()
