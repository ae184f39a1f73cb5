#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of docs/containers.md's first table, by each way into a slice but Slurm itself, on fake GPUs:

  ways_test.py SOURCE BUILD GUEST STATIC

GUEST is tests/preload/guest/, STATIC a statically linked program. Each way gives its programs what the file that
belongs to it writes down: `cuslice cdi`, pod.yaml, Slurm's plugin (lab/slurm/ runs it under Slurm itself), or a rule
with the stub in an /etc of the test's own.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, BUILD, GUEST, STATIC = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
del sys.argv[1:5]
LAUNCHER, LIBRARIES = BUILD / "bin/cuslice", BUILD / "lib/cuslice"
GPU, MIB, PATIENCE = "1xlaptop-2g", 1 << 20, 60
WHOLE = 2002 * MIB
OUT_OF_MEMORY, INVALID_VALUE = 2, 1
CHILD = ["/bin/sh", "-c", '"$@"; exit $?', "sh"]


def plain(**more):
    kept = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    return kept | more


class Program:
    """A guest that is told what to do, a line at a time."""

    def __init__(self, words, environment, folder, here):
        descriptor, name = tempfile.mkstemp(dir=folder)
        self.errors = pathlib.Path(name)
        with open(descriptor, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(list(map(str, words)), env=environment, cwd=here, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, text=True)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, line):
        self.tell(line)
        return self.answer()

    def code(self, line):
        return int(self.ask(line).split()[0])

    def number(self, line):
        return int(self.ask(line).split()[1])

    def said(self):
        return [line for line in self.errors.read_text().splitlines() if line.startswith("cuslice: ")]

    def end(self):
        if self.process.returncode is None:
            self.process.communicate(timeout=PATIENCE)
        return self.said()


class Way:
    """Programs on one machine, whose limit is 1200 MiB of a GPU of 2002 unless they are given another one."""

    own = {"limit": "1200MiB"}

    def __init__(self, test, gpu=GPU):
        owner = tempfile.TemporaryDirectory()
        test.addCleanup(owner.cleanup)
        self.test, self.gpu, self.folder = test, gpu, pathlib.Path(owner.name)
        for name in "books", "ledgers", "here":
            (self.folder / name).mkdir()
        self.prepare()

    def prepare(self):
        """What there has to be before a program starts."""

    def variables(self, settings):
        """`None`: not set."""
        given = {key: value for key, value in settings.items() if value is not None}
        return {"CUSLICE_" + key.upper().replace("-", "_"): str(value) for key, value in given.items()}

    def environment(self, settings):
        found = {"CUSLICE_HEADROOM": "16MiB", "CUSLICE_DIR": str(self.folder / "ledgers"), "CUSLICE_FAKE": self.gpu,
                 "CUSLICE_FAKE_DIR": str(self.folder / "books"), "LD_PRELOAD": str(LIBRARIES / "libcuslice.so")}
        return plain(**found | self.variables(self.own | settings))

    def command(self, words):
        return words

    def run(self, words, settings=None, **more):
        return subprocess.run(list(map(str, self.command(words))), env=self.environment(settings or {}) | more,
                              cwd=self.folder / "here", capture_output=True, text=True, timeout=PATIENCE)

    def start(self, settings=None, before=(), **more):
        words = self.command([*before, GUEST / "guest", "dlopen=libcuda.so.1"])
        program = Program(words, self.environment(settings or {}) | more, self.folder, self.folder / "here")
        self.test.addCleanup(program.end)
        return program

    def started(self, settings=None, **more):
        program = self.start(settings, **more)
        self.test.assertEqual(program.code("init"), 0, program.said())
        return program

    def held(self, command="ps"):
        done = subprocess.run([LAUNCHER, command, "--json", "--dir", self.folder / "ledgers", "--fake", self.gpu],
                              capture_output=True, text=True, check=True,
                              env=plain(CUSLICE_FAKE_DIR=str(self.folder / "books")))
        return json.loads(done.stdout)


class Variables(Way):
    name = "LD_PRELOAD and variables"


class Cdi(Way):
    """What `cuslice cdi` has an option for is in the specification, and the rest is a variable of the container."""

    name = "CDI"
    OPTIONS = {"limit", "fraction", "headroom", "allocator", "split", "group", "group-limit", "summary", "fake", "log"}

    def environment(self, settings):
        settings = self.own | {"headroom": "16MiB", "fake": self.gpu} | settings
        words = [f"--{key}={value}" for key, value in settings.items() if key in self.OPTIONS and value is not None]
        words += ["--per-process"] * ("per-process" in settings)
        done = subprocess.run([LAUNCHER, "cdi", "--dir", self.folder / "ledgers", *words], capture_output=True, text=True,
                              env=plain())
        self.test.assertEqual((done.returncode, done.stderr), (0, ""))
        written = json.loads(done.stdout)
        lines = written["containerEdits"]["env"] + written["devices"][0]["containerEdits"]["env"]
        rest = {key: value for key, value in settings.items() if key not in self.OPTIONS | {"per-process"}}
        return plain(CUSLICE_FAKE_DIR=str(self.folder / "books"), **dict(line.split("=", 1) for line in lines),
                     **self.variables(rest))


class Kubernetes(Way):
    """The variables of pod.yaml, and what a pod's author adds to them."""

    name = "Kubernetes"

    def environment(self, settings):
        text = (SOURCE / "integrations/kubernetes/pod.yaml").read_text()
        pod = dict(re.findall(r"- \{name: (\w+), value: \"?([^}\"]*)\"?\}", text))
        self.test.assertEqual(set(pod), {"LD_PRELOAD", "CUSLICE_LIMIT", "CUSLICE_GROUP", "CUSLICE_DIR"})
        found = super().environment({"group": pod["CUSLICE_GROUP"]} | settings)
        return found | {"LD_PRELOAD": pod["LD_PRELOAD"].replace("/opt/cuslice/current", str(BUILD))}


class Slurm(Way):
    """What the plugin sets for a task of a job with --cuslice-limit, as lab/slurm/slurm_test.py finds it there."""

    name = "Slurm"
    job = 42

    def environment(self, settings):
        found = super().environment(settings) | {"CUSLICE_JOB": f"slurm-{self.job}"}
        if "split" in settings:
            found["LD_PRELOAD"] += f":{LIBRARIES}/libcuslice-runtime.so"
        return found


class Rule(Way):
    """An /etc in which a rule is, and whose ld.so.preload names the stub; the environment asks for nothing."""

    name = "rule + stub"
    own = {}
    rule = 'limit = "1200MiB"\n'

    def prepare(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
            self.test.skipTest("needs root, and mount namespaces")
        etc = self.folder / "etc"
        (etc / "cuslice/rules.d").mkdir(parents=True)
        for name in "ld.so.cache", "passwd", "group", "nsswitch.conf":
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, etc / name)
        stub = self.folder / "system/libcuslice-preload.so"
        stub.parent.mkdir()
        shutil.copy(LIBRARIES / stub.name, stub)
        (stub.parent / "library").symlink_to(LIBRARIES)
        (etc / "ld.so.preload").write_text(f"{stub}\n")
        (etc / "cuslice/rules.d/10.toml").write_text('[[rule]]\nname = "all"\n' + self.rule)
        (etc / "cuslice/cuslice.toml").write_text(f'dir = "{self.folder}/ledgers"\n')
        for path in self.folder, etc, etc / "cuslice", etc / "cuslice/rules.d", stub.parent:
            path.chmod(0o755)

    def environment(self, settings):
        found = super().environment(settings) | {"LD_LIBRARY_PATH": str(LIBRARIES / "fake")}
        return {name: value for name, value in found.items() if name not in ("LD_PRELOAD", "CUSLICE_DIR")}

    def command(self, words):
        return ["unshare", "--mount", "/bin/sh", "-c", f'mount --bind {self.folder}/etc /etc && exec "$@"', "sh", *words]


class SharedRule(Rule):
    rule = 'limit = "1200MiB"\nshare = "user"\n'


WAYS = (Variables, Cdi, Kubernetes, Slurm, Rule)


def by_each_way(test):
    @functools.wraps(test)
    def tests(self):
        for way in WAYS:
            with self.subTest(way.name):
                test(self, way)
    return tests


class Rows(unittest.TestCase):
    @by_each_way
    def test_a_limit_and_a_fraction(self, way):
        program = way(self).started()
        self.assertEqual(program.number("total 0"), 1200 * MIB)
        self.assertEqual(program.code("retain 0"), 0)
        self.assertEqual(program.code(f"alloc a {1200 * MIB}"), OUT_OF_MEMORY)
        self.assertEqual(program.code(f"alloc a {800 * MIB}"), 0)
        # Beside a rule the smaller one holds.
        self.assertEqual(way(self).started({"limit": None, "fraction": "0.5"}).number("total 0"), WHOLE // 2)

    def test_the_context_on_top(self):
        # Alone in a container, or in no group.
        for way, alone in (Variables, {}), (Cdi, {"per-process": "yes"}), (Kubernetes, {"group": None}), (Rule, {}):
            with self.subTest(way.name):
                program = way(self).started({"limit": "900MiB+context"} | alone)
                self.assertEqual(program.code("retain 0"), 0)
                context = 300 * MIB if way is Rule else 0
                self.assertEqual(program.number("info"), (900 - 16) * MIB - context)
        program = Kubernetes(self).start({"limit": "900MiB+context"})
        self.assertEqual(program.code("init"), INVALID_VALUE)
        self.assertIn("+context can't be had in a group", program.said()[0])

    @by_each_way
    def test_gpus_in_a_list(self, way):
        machine = way(self, "2xlaptop-2g")
        program, other = machine.started({"gpus": "1"}), machine.started({"gpus": "0"})
        self.assertEqual(program.ask("count"), "0 1")
        self.assertNotEqual(program.ask("uuid 0"), other.ask("uuid 0"))
        # The list stays within the variable, whoever has set that.
        refused = machine.start({"gpus": "1"}, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID")
        self.assertEqual(refused.code("init"), INVALID_VALUE)
        self.assertIn("is not among the GPUs that are left to choose from", refused.said()[0])

    @by_each_way
    def test_any_gpu(self, way):
        machine = way(self, "2xlaptop-2g")
        first = machine.started({"gpus": "0"})
        self.assertEqual((first.code("retain 0"), first.code(f"alloc a {300 * MIB}")), (0, 0))
        program = machine.started({"gpus": "any"})
        self.assertEqual(program.ask("count"), "0 1")
        self.assertNotEqual(program.ask("uuid 0"), first.ask("uuid 0"))
        if way is not Slurm:  # where the job reserves it at its context
            self.assertEqual({one["reserved"] for one in machine.held()["processes"]} - {0}, set())

    @by_each_way
    def test_a_split(self, way):
        program = way(self).started({"split": "0=2"})
        self.assertEqual(program.ask("count"), "0 2")
        self.assertEqual([program.number(f"total {part}") for part in (0, 1)], [600 * MIB] * 2)

    @by_each_way
    def test_a_split_on_the_runtime(self, way):
        fake, shim = str(LIBRARIES / "fake"), str(LIBRARIES / "libcuslice-runtime.so")
        machine, how = way(self), {"LD_LIBRARY_PATH": fake}
        if way not in (Cdi, Slurm):  # which bring the shim themselves
            done = machine.run([GUEST / "guest_split_runtime13"], {"split": "0=2"}, **how)
            self.assertIn("count 1", done.stdout.splitlines())
            self.assertIn("libcuslice-runtime.so has to be in LD_PRELOAD", done.stderr)
            before = machine.environment({}).get("LD_PRELOAD")
            how["LD_PRELOAD"] = f"{before}:{shim}" if before else shim
        done = machine.run([GUEST / "guest_split_runtime13"], {"split": "0=2"}, **how)
        self.assertIn("count 2", done.stdout.splitlines())
        self.assertNotIn("has to be in LD_PRELOAD", done.stderr)

    @by_each_way
    def test_a_cache(self, way):
        machine = way(self)
        program = machine.started({"allocator": "growth"})
        self.assertEqual([program.code(line) for line in ("retain 0", f"alloc a {300 * MIB}", "free a")], [0] * 3)
        words = [LAUNCHER, "stats", "--json", program.ask("pid"), "--dir", machine.folder / "ledgers"]
        gpu = json.loads(subprocess.run(words, capture_output=True, check=True, env=plain()).stdout)["gpus"][0]
        self.assertEqual((gpu["allocator"], gpu["active"]["current"]), ("growth", 0))
        self.assertEqual(gpu["reserved"]["current"], 300 * MIB)

    @by_each_way
    def test_what_tensorflow_finds(self, way):
        program = way(self).started({"allocator": "growth"})
        self.assertEqual(program.ask("getenv TF_FORCE_GPU_ALLOW_GROWTH"), "=true")
        self.assertEqual(program.ask("getenv TF_DEVICE_MIN_SYS_MEMORY_IN_MB"), "=192")

    @by_each_way
    def test_what_jax_finds(self, way):
        names = "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION"
        script = f"import os; print(*(os.environ.get(name) for name in {names}))"
        machine = way(self)
        found = machine.run([sys.executable, "-c", script], {"allocator": "growth"}).stdout
        self.assertEqual(found, "None None\n" if way is Rule else "false None\n")
        # The constructor reads the environment alone, no file.
        file = machine.folder / "growth.toml"
        file.write_text('[memory]\nallocator = "growth"\n')
        self.assertEqual(machine.run([sys.executable, "-c", script], {"config": file}).stdout, "None None\n")

    @by_each_way
    def test_children(self, way):
        program = way(self).start(before=CHILD)
        self.assertEqual((program.code("init"), program.number("total 0")), (0, 1200 * MIB))

    def test_who_shares_the_limit(self):
        kinds = {Variables: None, Cdi: "group", Kubernetes: "group", Slurm: "job", Rule: None, SharedRule: "rule"}
        for way, kind in kinds.items():
            with self.subTest(way.__name__):
                machine = way(self)
                first, second = machine.started(), machine.started()
                self.assertEqual([one.code("retain 0") for one in (first, second)], [0, 0])
                self.assertEqual(first.code(f"alloc a {400 * MIB}"), 0)
                self.assertEqual(second.code(f"alloc a {400 * MIB}"), OUT_OF_MEMORY if kind else 0)
                self.assertEqual({one["kind"] for one in machine.held()["processes"]}, {kind} - {None})

    @by_each_way
    def test_a_group(self, way):
        machine = way(self)
        lab = {"limit": "1900MiB", "group": "lab", "group-limit": "1000MiB"}
        first, second = machine.started(lab), machine.started(lab)
        self.assertEqual([one.code("retain 0") for one in (first, second)], [0, 0])
        self.assertEqual(first.code(f"alloc a {200 * MIB}"), 0)
        self.assertEqual(second.code(f"alloc a {200 * MIB}"), OUT_OF_MEMORY)
        self.assertIn("limit of group lab are in use", second.said()[-1])

    def two_jobs(self, way, more, second):
        """Two programs that have no limit in common, of which the GPU has room for one."""
        alone = {Cdi: {"per-process": "yes"}, Kubernetes: {"group": None}}.get(way, {})
        machine = way(self)
        programs = [machine.started(more)]
        machine.job = 43
        programs.append(machine.started(more | alone | second))
        return machine, *programs

    @by_each_way
    def test_a_reservation(self, way):
        first_context = {"admission": "first-context"}
        for more in {}, first_context:
            machine, first, second = self.two_jobs(way, more, {})
            reserves = bool(more) or way is Slurm
            self.assertEqual(first.code("retain 0"), 0)
            self.assertEqual(second.code("retain 0"), OUT_OF_MEMORY if reserves else 0)
            reserved = {one["reserved"] for one in machine.held()["processes"]} - {0}
            self.assertEqual(reserved, {1200 * MIB} if reserves else set())

    @by_each_way
    def test_the_queue(self, way):
        more = {} if way is Slurm else {"admission": "first-context"}
        machine, first, second = self.two_jobs(way, more, {"wait": "yes"})
        self.assertEqual(first.code("retain 0"), 0)
        second.tell("retain 0")
        until = time.monotonic() + PATIENCE
        while not machine.held()["waiting"]:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)
        self.assertEqual(second.said(), [])
        first.end()
        self.assertEqual(second.answer(), "0")

    @by_each_way
    def test_a_wrong_setting(self, way):
        # `cuslice cdi` and srun refuse their options themselves.
        wrong = {"idle-release": "4x"} if way in (Cdi, Slurm) else {"limit": "4x"}
        program = way(self).start(wrong)
        self.assertEqual(program.code("init"), INVALID_VALUE)
        self.assertEqual(len(program.said()), 1)
        self.assertTrue(program.said()[0].endswith("; no GPU will be used"))
        program = way(self).start({"limit": "7=1GiB"})
        self.assertEqual(program.code("init"), INVALID_VALUE)
        self.assertIn("'7' names no GPU that is here", program.said()[0])

    @by_each_way
    def test_files(self, way):
        machine = way(self)
        (machine.folder / "here/cuslice.toml").write_text('[memory]\nlimit = "500MiB"\n')
        (machine.folder / "cuslice").mkdir()
        (machine.folder / "cuslice/cuslice.toml").write_text("summary = true\n")
        program = machine.started(XDG_CONFIG_HOME=str(machine.folder))
        self.assertEqual((program.number("total 0"), program.code("retain 0")), (1200 * MIB, 0))
        self.assertIn("this process used at most", program.end()[0])

    @by_each_way
    def test_fake_gpus(self, way):
        machine = way(self)
        given = machine.environment({})
        # The driver is there by the variable alone, the runtime by the folder.
        if way is Cdi:
            self.assertEqual(given["LD_LIBRARY_PATH"], str(LIBRARIES / "fake"))
        given.pop("LD_LIBRARY_PATH", None)
        program = Program(machine.command([GUEST / "guest", "dlopen=libcuda.so.1"]), given, machine.folder, "/")
        self.addCleanup(program.end)
        self.assertEqual((program.code("init"), program.number("total 0")), (0, 1200 * MIB))
        given["LD_LIBRARY_PATH"] = str(LIBRARIES / "fake")
        done = subprocess.run(list(map(str, machine.command([GUEST / "guest_runtime13"]))), input="fill\n", text=True,
                              env=given, capture_output=True)
        self.assertEqual(done.stdout, "2 13\n", done.stderr)
        listed = machine.run(["/bin/sh", "-c", "command -v nvidia-smi"]).stdout
        self.assertNotIn(str(LIBRARIES), listed)
        program = machine.start({"fake-machine": "new"})
        self.assertEqual(program.code("init"), INVALID_VALUE)
        self.assertIn("works under cuslice run only", program.said()[0])

    @by_each_way
    def test_nothing_is_said_of_what_is_out_of_reach(self, way):
        machine = way(self)
        client = machine.folder / "docker"
        client.write_text("#!/bin/sh\nexit 0\n")
        client.chmod(0o755)
        for words in [STATIC], [client, "run"]:
            self.assertEqual(machine.run(words, CUDA_TASK_PRIORITY="1").stderr, "")

    @by_each_way
    def test_an_environment_that_was_cleared(self, way):
        kept = "PATH", "CUSLICE_FAKE", "CUSLICE_FAKE_DIR"
        machine = way(self)
        total = 1200 * MIB if way is Rule else WHOLE
        program = machine.start()
        self.assertEqual(program.code("clearenv " + " ".join(kept)), 0)
        self.assertEqual((program.code("init"), program.number("total 0")), (0, total))
        lines = [f"{name}={value}" for name, value in machine.environment({}).items() if name in kept]
        child = machine.start(before=["env", "-i", *lines, f"LD_LIBRARY_PATH={LIBRARIES}/fake"])
        self.assertEqual((child.code("init"), child.number("total 0")), (0, total))

    @by_each_way
    def test_a_program_with_addresssanitizer(self, way):
        program = GUEST / "guest_sanitized"
        if not program.exists():
            self.skipTest("no program with AddressSanitizer was built")
        machine = way(self)
        done = machine.run([program])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ASan runtime does not come first", done.stderr)
        done = machine.run([program], ASAN_OPTIONS="verify_asan_link_order=0")
        self.assertEqual((done.returncode, done.stdout), (0, f"1 {1200 * MIB}\n"), done.stderr)

    @by_each_way
    def test_a_summary(self, way):
        program = way(self).started({"summary": "yes"})
        self.assertEqual(program.code("retain 0"), 0)
        self.assertRegex(program.end()[-1], "this process used at most .* of the 1200.0 MiB limit")

    @by_each_way
    def test_a_recording(self, way):
        machine = way(self)
        rows = machine.folder / "rows.csv"
        program = machine.started({"record": rows})
        self.assertEqual([program.code(line) for line in ("retain 0", "alloc a 4096")], [0, 0])
        program.end()
        self.assertEqual(len(rows.read_text().splitlines()), 2)
        program = machine.start({"record": "rows.csv"})
        self.assertEqual(program.code("init"), INVALID_VALUE)
        self.assertIn("an absolute path is needed", program.said()[0])

    def test_who_is_listed(self):
        cases = {Variables: ({}, []), Cdi: ({}, ["group"]), Kubernetes: ({}, ["group"]), Slurm: ({}, ["job"]),
                 Rule: ({}, []), SharedRule: ({}, ["rule"])}
        named = {way: ({"group": "lab"}, ["group"]) for way in (Variables, Rule)}
        admitted = {way: ({"admission": "first-context"}, ["job"]) for way in (Variables, Rule)}
        for way, (more, kinds) in [*cases.items(), *named.items(), *admitted.items()]:
            with self.subTest(way.__name__, **more):
                machine = way(self)
                self.assertEqual(machine.started(more).code("retain 0"), 0)
                for command in "ps", "top":
                    self.assertEqual([one["kind"] for one in machine.held(command=command)["processes"]], kinds)


if __name__ == "__main__":
    unittest.main(verbosity=2)
