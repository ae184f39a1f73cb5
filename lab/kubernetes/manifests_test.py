#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manifests of integrations/kubernetes/ are valid, and agree with the script that installs:

  manifests_test.py SOURCE BUILD

Needs kubernetes-validate and PyYAML, which scripts/setup.sh tests puts into build/pytest; 77, skipped, without them.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
FOLDER = SOURCE / "integrations/kubernetes"
del sys.argv[1:3]
sys.dont_write_bytecode = True
sys.path[:0] = map(str, (SOURCE / "build/pytest").glob("lib/python3*/site-packages"))
try:
    import kubernetes_validate
    import yaml
except ImportError as missing:
    print(f"SKIPPED: {missing}: scripts/setup.sh tests")
    sys.exit(77)

VERSION = kubernetes_validate.latest_version()
PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total, block = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
print(total.value >> 20, cuda.cuMemAlloc_v2(ctypes.byref(block), total))
"""


def documents(name):
    return [one for one in yaml.safe_load_all((FOLDER / name).read_text()) if one]


def pod_of(document):
    return document["spec"] if document["kind"] == "Pod" else document["spec"]["template"]["spec"]


def environment_of(pod):
    return {one["name"]: one["value"] for one in pod["containers"][0].get("env", [])}


def gpu_memory():
    listed = subprocess.run([BUILD / "bin/cuslice", "devices", "--json", "--fake", "1xt4"], capture_output=True, check=True)
    return json.loads(listed.stdout)["devices"][0]["total"]


def install(target, *more, bare=()):
    """From a folder like a release's, which has what programs need of the build."""
    with tempfile.TemporaryDirectory() as tree:
        os.chmod(tree, 0o755)  # of which the copy is one
        for name in "bin", "lib":
            shutil.copytree(BUILD / name, pathlib.Path(tree, name), symlinks=True)
        return subprocess.run([*bare, FOLDER / "install.sh", tree, target, *more], capture_output=True, text=True)


class Manifests(unittest.TestCase):
    def test_each_is_what_kubernetes_takes(self):
        names = sorted(path.name for path in FOLDER.glob("*.yaml"))
        self.assertEqual(names, ["daemonset.yaml", "deployment.yaml", "device-plugin-config.yaml", "pod-mps.yaml", "pod.yaml"])
        for name in names:
            for document in documents(name):
                with self.subTest(f"{name}: {document['kind']}"):
                    kubernetes_validate.validate(document, VERSION, strict=True)
        # The check can fail.
        wrong = documents("pod.yaml")[0]
        wrong["spec"]["containers"][0]["volumeMount"] = []
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, VERSION, strict=True)

    def test_pods_mount_what_the_daemonset_makes(self):
        made = {volume["hostPath"]["path"] for volume in pod_of(documents("daemonset.yaml")[1])["volumes"]}
        script = pod_of(documents("daemonset.yaml")[1])["initContainers"][0]["command"]
        self.assertEqual(made, {"/opt/cuslice", "/run/cuslice"})
        self.assertEqual([word.removeprefix("/node") for word in script[2:]], ["/opt/cuslice", "/run/cuslice"])
        # The image has the script by that name, and the installation at that place (lab/release/image_test.py).
        self.assertEqual(script[:2], ["cuslice-install", "/opt/cuslice"])
        for name in "pod.yaml", "deployment.yaml", "pod-mps.yaml":
            pod = pod_of(documents(name)[0])
            hosts = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
            mounts = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
            self.assertEqual({path: hosts[mount["name"]] for path, mount in mounts.items()}, {path: path for path in made})
            self.assertTrue(mounts["/opt/cuslice"]["readOnly"])
            environment = environment_of(pod)
            self.assertEqual(environment["CUSLICE_DIR"], "/run/cuslice")
            self.assertEqual(pod["containers"][0]["resources"]["limits"], {"nvidia.com/gpu": 1})

    def test_containers_have_no_rights_that_they_can_do_without(self):
        for name in "pod.yaml", "deployment.yaml", "pod-mps.yaml", "daemonset.yaml":
            pod = pod_of(documents(name)[-1])
            for container in pod.get("initContainers", []) + pod["containers"]:
                with self.subTest(f"{name}: {container['name']}"):
                    given = dict(container["securityContext"])
                    user, group = given.pop("runAsUser"), given.pop("runAsGroup")
                    # The one that installs writes into folders of the node's root.
                    installs = container["name"] == "install"
                    self.assertEqual((user == 0, group == 0, given.pop("runAsNonRoot", False)), (installs, installs, not installs))
                    self.assertEqual(given, {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                             "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}})
            self.assertFalse({"hostPID", "hostIPC", "hostNetwork", "shareProcessNamespace"} & set(pod))

    def test_root_without_capabilities_can_install(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root can give its capabilities up")
        bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        with tempfile.TemporaryDirectory() as folder:
            done = install(folder + "/opt", folder + "/run", bare=bare)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(pathlib.Path(folder, "opt/current/bin/cuslice").exists())
            self.assertEqual(pathlib.Path(folder, "run").stat().st_mode & 0o7777, 0o1777)

    def test_programs_get_their_slices_without_capabilities(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root can give its capabilities up")
        given = environment_of(pod_of(documents("pod.yaml")[0]))
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o1777)
            self.assertEqual(install(folder + "/opt/cuslice", folder + "/run/cuslice").returncode, 0)
            given |= {"LD_PRELOAD": folder + given["LD_PRELOAD"], "CUSLICE_DIR": folder + given["CUSLICE_DIR"],
                      "CUSLICE_FAKE": "1xt4", "CUSLICE_FAKE_DIR": folder + "/fake", "PATH": os.environ["PATH"]}
            words = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
            done = subprocess.run([*words, "/usr/bin/python3", "-c", PROGRAM], env=given, capture_output=True, text=True, cwd="/")
            self.assertEqual(done.stdout, "4096 2\n", done.stderr)

    def test_the_device_plugin_hands_out_what_the_deployment_asks_for(self):
        config = yaml.safe_load(documents("device-plugin-config.yaml")[0]["data"]["config.yaml"])
        shared = config["sharing"]["timeSlicing"]["resources"][0]
        deployment = documents("deployment.yaml")[0]
        self.assertEqual(shared, {"name": "nvidia.com/gpu", "replicas": deployment["spec"]["replicas"]})
        self.assertEqual(float(environment_of(pod_of(deployment))["CUSLICE_FRACTION"]) * shared["replicas"], 1)

    def test_programs_get_their_slices_from_what_was_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            target, ledgers = pathlib.Path(folder, "opt/cuslice"), pathlib.Path(folder, "run/cuslice")
            for _ in range(2):  # and a second time, as after a restart of the node
                done = install(target, ledgers)
                self.assertEqual(done.returncode, 0, done.stderr)
            version = re.fullmatch(r"cuslice (\S+) is in .*/current\n", done.stdout)[1]
            self.assertEqual(os.listdir(target / "releases"), [version])
            self.assertEqual(sorted(os.listdir(target)), ["current", "releases"])
            self.assertEqual(os.readlink(target / "current"), f"releases/{version}")
            self.assertEqual(ledgers.stat().st_mode & 0o7777, 0o1777)
            for name, total in ("pod.yaml", 4096), ("deployment.yaml", gpu_memory() // 4 >> 20), ("pod-mps.yaml", 4096):
                given = environment_of(pod_of(documents(name)[0]))
                self.assertTrue(given["LD_PRELOAD"].startswith("/opt/cuslice/"))
                given |= {"LD_PRELOAD": folder + given["LD_PRELOAD"], "CUSLICE_DIR": folder + given["CUSLICE_DIR"],
                          "CUSLICE_FAKE": "1xt4", "CUSLICE_FAKE_DIR": folder, "PATH": os.environ["PATH"]}
                done = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True)
                # The total is the limit, and more than fits is refused with a line that names who set it.
                self.assertEqual(done.stdout, f"{total} 2\n", done.stderr)
                self.assertRegex(done.stderr, "limit is from (CUSLICE_|CUDA_MPS_)")

    def test_half_an_installation_is_never_found(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder)
            (target / "releases/.new/of-a-killed-one").mkdir(parents=True)
            done = install(target)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertFalse((target / "current/of-a-killed-one").exists())
            self.assertNotEqual(subprocess.run([FOLDER / "install.sh", folder, target / "b"], capture_output=True).returncode, 0)
            self.assertFalse((target / "b").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
