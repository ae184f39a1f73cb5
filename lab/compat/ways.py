# SPDX-License-Identifier: Apache-2.0
"""The ways into a slice: what each is given for the same settings, and the command line that it becomes.

  run          cuslice run
  environment  LD_PRELOAD and CUSLICE_*
  TOML         LD_PRELOAD and the file that CUSLICE_CONFIG names
  CDI          `cuslice cdi`, its edits made to a bundle of runc
  rule         a rule in an /etc of the test's own, whose ld.so.preload names the stub; what no rule has is in CUSLICE_*

Fake GPUs are no way's own: where there is no launcher, the programs find them by what docs/fake-gpu.md names.
"""

import json
import os
import pathlib
import shutil
import subprocess

KEPT = ("HOME", "LANG", "LC_ALL", "PATH", "TERM", "TMPDIR", "USER")
FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc")
IN_TABLES = ("limit", "fraction", "allocator", "split")  # keys of [memory] and [gpu.X]


class Missing(Exception):
    """A way that can't be had here."""


class Refused(Exception):
    """Settings that are refused before any program is started: the exit code and the line."""


def answer(*words, **more):
    """A command's output, or an error with its last line."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise Refused(done.returncode, (done.stderr.splitlines() or ["?"])[-1])
    return done.stdout


def allowed(*words):
    """True if this account may do that here."""
    return os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0


def variable(key):
    """The variable of a key."""
    return "CUSLICE_" + key.upper().replace("-", "_")


def values(text):
    """A value for some GPUs, as options have it: GPU → value, with "" for every GPU."""
    if "=" not in text:
        return {"": text}
    return dict(one.split("=", 1) for one in text.split(","))


def tables(settings):
    """The lines of a file for settings of [memory] and [gpu.X]."""
    lines = {}
    for key, value in settings.items():
        for gpu, one in values(value).items():
            lines.setdefault(f"[gpu.{gpu}]" if gpu else "[memory]", []).append(f'{key} = "{one}"')
    return [line for table, rows in sorted(lines.items()) for line in (table, *rows)]


def toml(settings):
    """A cuslice.toml."""
    inside = {key: value for key, value in settings.items() if key in IN_TABLES}
    top = [
        f"{key} = true" if value == "yes" else f'{key} = "{value}"'
        for key, value in settings.items()
        if key not in inside
    ]
    return "\n".join([*top, *tables(inside), ""])


class Place:
    """An installation, a Python, and an empty folder for one run. `libraries`: folders that the program needs beside
    the fake GPU's."""

    def __init__(self, cuslice, python, folder, libraries):
        self.cuslice, self.python = pathlib.Path(cuslice).resolve(), pathlib.Path(python).absolute()
        self.installed = self.cuslice.parents[1] / "lib/cuslice"
        self.folder, self.libraries = pathlib.Path(folder), list(filter(None, libraries.split(":")))
        self.books = self.folder / "books"
        self.books.mkdir()

    def plain(self, **more):
        """Nothing of cuslice's or of CUDA's."""
        kept = {name: value for name, value in os.environ.items() if name in KEPT}
        home = {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder / "none")}
        given = {"CUSLICE_FAKE_DIR": str(self.books), "COMPAT_WATCH": str(self.installed / "fake/watch")}
        return {**kept, **home, **given, "LD_LIBRARY_PATH": ":".join(self.libraries), **more}

    def fake_libraries(self):
        """The libraries that `cuslice run` preloads for the fake GPU."""
        listed = answer(
            self.cuslice, "run", "--fake", "1xt4", "--", "/usr/bin/printenv", "LD_PRELOAD", env=self.plain()
        )
        return [word for word in listed.strip().split(":") if "/fake/" in word]


class Run:
    """The way that the others are compared with."""

    name = "run"

    def __init__(self, place, fake, settings):
        self.place, self.fake, self.settings = place, fake, settings

    @staticmethod
    def look():
        """Raises Missing where the way can't be had."""

    def environment(self):
        return self.place.plain()

    def command(self, words):
        options = [f"--{key}={value}" for key, value in self.settings.items()]
        return [self.place.cuslice, "run", "--fake", self.fake, *options, "--", *words]


class Environment(Run):
    name = "environment"

    def preloads(self):
        """The library, and for partitions what shows them to programs on the CUDA runtime."""
        shim = ["libcuslice-runtime.so"] if "split" in self.settings else []
        return [str(self.place.installed / name) for name in ("libcuslice.so", *shim)]

    def variables(self):
        return {variable(key): value for key, value in self.settings.items()}

    def environment(self):
        folders = [str(self.place.installed / "fake"), *self.place.libraries]
        preloads = [*self.preloads(), *self.place.fake_libraries()]
        return self.place.plain(
            **self.variables(), CUSLICE_FAKE=self.fake, LD_LIBRARY_PATH=":".join(folders), LD_PRELOAD=":".join(preloads)
        )

    def command(self, words):
        return words


class File(Environment):
    name = "TOML"

    def variables(self):
        file = self.place.folder / "settings.toml"
        file.write_text(toml(self.settings))
        return {"CUSLICE_CONFIG": str(file)}


class Cdi(Run):
    """A setting that `cuslice cdi` has no option for is a variable of the container."""

    name = "CDI"
    OPTIONS = ("limit", "fraction", "split", "allocator", "fake")
    RUNC = shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin:/sbin")

    @classmethod
    def look(cls):
        if not cls.RUNC or not allowed("unshare", "--mount-proc", "--pid", "--ipc", "--uts", "--fork", "true"):
            raise Missing("needs runc, root, and its namespaces")

    def specification(self):
        settings = {"fake": self.fake, **self.settings}
        if "limit" not in settings and "fraction" not in settings:
            settings["fraction"] = "1"
        options = [f"--{key}={value}" for key, value in settings.items() if key in self.OPTIONS]
        # In a group a limit can't leave the context out.
        options += ["--per-process"] * any("+context" in value for value in settings.values())
        return json.loads(answer(self.place.cuslice, "cdi", *options, env=self.place.plain()))

    def bound(self):
        """Mounts beside the edits': this machine's programs, Python, and this folder."""
        real = self.place.python.resolve()
        own = (
            real.parents[1],
            self.place.python.parents[1],
            pathlib.Path(__file__).resolve().parent,
            self.place.folder,
        )
        for path in (*FOLDERS, *own):
            if os.path.exists(path):
                yield {"destination": str(path), "type": "bind", "source": str(path), "options": ["rbind", "ro"]}

    def mounts(self, edits):
        memory = {"type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]}
        books = {"type": "bind", "source": str(self.place.books), "options": ["rbind", "rw"]}
        yield {"destination": "/proc", "type": "proc", "source": "proc"}
        for path in "/dev", "/dev/shm", "/tmp":
            yield {"destination": path, **memory}
        yield from self.bound()
        yield {"destination": str(self.place.books), **books}
        for one in edits:
            for mount in one.get("mounts", []):
                yield {
                    "destination": mount["containerPath"],
                    "source": mount["hostPath"],
                    "type": "bind",
                    "options": mount["options"],
                }

    def variables(self, edits):
        rest = {variable(key): value for key, value in self.settings.items() if key not in self.OPTIONS}
        given = {**self.place.plain(**rest), "HOME": "/tmp"}
        for one in edits:
            given |= dict(line.split("=", 1) for line in one.get("env", []))
        given["LD_LIBRARY_PATH"] = ":".join([given["LD_LIBRARY_PATH"], *self.place.libraries])
        return [f"{name}={value}" for name, value in given.items()]

    def command(self, words):
        written = self.specification()
        edits = [written["containerEdits"], written["devices"][0]["containerEdits"]]
        bundle = self.place.folder / "bundle"
        (bundle / "root").mkdir(parents=True)
        process = {"args": [str(word) for word in words], "cwd": "/", "user": {"uid": 0, "gid": 0}}
        process["env"] = self.variables(edits)
        configuration = {
            "ociVersion": "1.0.2",
            "process": process,
            "root": {"path": "root"},
            "mounts": list(self.mounts(edits)),
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
        }
        (bundle / "config.json").write_text(json.dumps(configuration))
        name = f"cuslice-ways-{os.getpid()}-{self.place.folder.name}"
        return [self.RUNC, "--root", self.place.folder / "state", "run", "--bundle", bundle, name]


class Rule(Environment):
    """The limit is the rule's, and the program asks for none."""

    name = "rule"
    RULED = ("limit", "fraction")

    @classmethod
    def look(cls):
        if not allowed("unshare", "--mount", "mount", "--bind", "/etc", "/etc"):
            raise Missing("needs root, and mount namespaces")

    def preloads(self):
        return super().preloads()[1:]

    def rule(self):
        """Its own words for the limits; what it can't say is asked for beside it."""
        lines = ["[[rule]]", 'name = "all"']
        for key in self.RULED:
            for gpu, value in values(self.settings[key]).items() if key in self.settings else ():
                size = value.removesuffix("+context")
                lines.append(f'{"gpu." + gpu + "." if gpu else ""}{key} = "{size}"')
        return "\n".join([*lines, ""])

    def variables(self):
        return {
            variable(key): value
            for key, value in self.settings.items()
            if key not in self.RULED or value.endswith("+context")
        }

    def prepare(self):
        etc, system = self.place.folder / "etc", self.place.folder / "system"
        (etc / "cuslice/rules.d").mkdir(parents=True)
        system.mkdir()
        for name in "ld.so.cache", "passwd", "group", "nsswitch.conf", "hosts":
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, etc / name)
        stub = system / "libcuslice-preload.so"
        shutil.copy(self.place.installed / stub.name, stub)
        (system / "library").symlink_to(self.place.installed)
        (etc / "ld.so.preload").write_text(f"{stub}\n")
        (etc / "cuslice/rules.d/10.toml").write_text(self.rule())
        for path in self.place.folder, etc, etc / "cuslice", etc / "cuslice/rules.d", system:
            path.chmod(0o755)
        return etc

    def command(self, words):
        inside = f'mount --bind {self.prepare()} /etc && exec "$@"'
        return ["unshare", "--mount", "/bin/sh", "-c", inside, "sh", *words]


WAYS = (Run, Environment, File, Cdi, Rule)
