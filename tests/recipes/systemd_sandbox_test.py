# SPDX-License-Identifier: Apache-2.0
"""The launcher under the sandbox of integrations/systemd/slice@.service, without systemd:

  systemd_sandbox_test.py SOURCE BUILD

The unit's directives are read, and the same mounts are made in a mount namespace of its own, with this build as
/opt/cuslice, an empty /run, and a fake GPU. A directive that this test doesn't know fails it.
"""
import configparser
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
del sys.argv[1:3]
UNITS = SOURCE / "integrations/systemd"
NOBODY = 61200  # in the range that systemd takes dynamic users from
# These change nothing that the launcher could see before its program ends.
WITHOUT_SANDBOX = {"Type", "RestartForceExitStatus", "RestartSec", "RestartPreventExitStatus", "RemainAfterExit"}
# The build may lie below a folder that is hidden here, and is found by its descriptor then.
PLACES = """
set -e
exec 3<"$BUILD"
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=1777 none /dev/shm
mount -t tmpfs -o mode=755 none /opt
mkdir /opt/cuslice
mount --no-canonicalize --rbind /proc/self/fd/3 /opt/cuslice
exec 3<&-
"""
# As systemd's ProtectSystem=strict: all but /dev, /proc, /sys and what ReadWritePaths= names.
STRICT = r"""
for path in $READ_WRITE; do mount --bind "$path" "$path"; done
cut -d" " -f5 /proc/self/mountinfo | sort -u | while read -r at; do
    at=$(printf %b "$at")
    [ -e "$at" ] || continue  # below one of the mounts that were made just now
    case $at in /dev | /dev/* | /proc | /proc/* | /sys | /sys/*) continue ;; esac
    for path in $READ_WRITE; do [ "$at" != "$path" ] || continue 2; done
    mount -o remount,bind,ro "$at"
done
"""
PRIVATE_TMP = """
mount -t tmpfs -o mode=1777 none /tmp
mount -t tmpfs -o mode=1777 none /var/tmp
"""


def service(text):
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read_string(text)
    return dict(parser["Service"])


def run_unit(text, program=None):
    """Runs the unit's command, with another program in place of its own, after the one that it wants."""
    unit = service(text)
    words = shlex.split(unit.pop("ExecStart").replace("%i", "4GiB"))
    if program:
        words = words[:words.index("--") + 1] + program
    variables = dict([unit.pop("Environment").split("=", 1)])
    dynamic = unit.pop("DynamicUser", "no") == "yes"
    strict = unit.pop("ProtectSystem", "strict" if dynamic else "no") == "strict" or dynamic
    private_tmp = unit.pop("PrivateTmp", "yes" if dynamic else "no") == "yes" or dynamic
    variables["READ_WRITE"] = unit.pop("ReadWritePaths", "")
    unknown = set(unit) - WITHOUT_SANDBOX
    if unknown:
        raise ValueError(f"the test doesn't know {sorted(unknown)}")
    first = service((UNITS / "cuslice-ledgers.service").read_text())["ExecStart"]
    script = PLACES + first + "\n" + (STRICT if strict else "") + (PRIVATE_TMP if private_tmp else "")
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--"] if dynamic else []
    script += "cd /\nexec " + shlex.join([*user, *words]) + "\n"
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "BUILD": str(BUILD), "CUSLICE_FAKE": "1xt4",
                   "CUSLICE_FAKE_DIR": "/dev/shm/fake", **variables}
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                          env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def why_not():
    if os.geteuid() != 0:
        return "only root can become another user in a mount namespace"
    missing = [tool for tool in ("unshare", "setpriv", "mount") if not shutil.which(tool)]
    if missing:
        return f"there is no {missing[0]} here"
    tried = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/run"], capture_output=True, text=True)
    return tried.stderr if tried.returncode else ""


@unittest.skipIf(why_not(), why_not())
class Sandbox(unittest.TestCase):
    text = (UNITS / "slice@.service").read_text()

    def changed(self, old, new):
        self.assertIn(old, self.text)
        return self.text.replace(old, new)

    def test_the_program_starts_in_its_slice(self):
        done = run_unit(self.text, ["/opt/cuslice/bin/cuslice", "ps", "--json"])
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["processes"]
        self.assertEqual([(row["reserved"], row["user"]) for row in rows], [(4 << 30, str(NOBODY))])

    def test_its_own_program_is_all_that_may_be_missing(self):
        done = run_unit(self.text)
        self.assertIn(done.returncode, (0, 127), done.stderr)

    def test_the_system_is_read_only_to_it(self):
        for path in ("/run/x", "/etc/x", "/opt/x", "/var/lib/x", "/usr/x"):
            done = run_unit(self.text, ["/usr/bin/touch", path])
            self.assertNotEqual(done.returncode, 0, path)
            self.assertIn("Read-only file system", done.stderr)
        self.assertEqual(run_unit(self.text, ["/usr/bin/touch", "/run/cuslice/x", "/tmp/x"]).returncode, 0)

    def test_without_its_folder_the_launcher_says_why(self):
        for old, new in (("ReadWritePaths=/run/cuslice\n", ""), ("ReadWritePaths=/run/cuslice", "ReadWritePaths=/var/lib"),
                         ("CUSLICE_DIR=/run/cuslice", "CUSLICE_DIR=/run/other")):
            done = run_unit(self.changed(old, new), ["/bin/true"])
            self.assertEqual(done.returncode, 78, (old, done.stderr))
            self.assertIn("Read-only file system", done.stderr)

    def test_a_directive_that_nobody_tried_is_noticed(self):
        with self.assertRaises(ValueError):
            run_unit(self.changed("DynamicUser=yes", "DynamicUser=yes\nPrivateDevices=yes"))


if __name__ == "__main__":
    unittest.main()
