# SPDX-License-Identifier: Apache-2.0
"""A Slurm of two nodes on this machine, for the programs beside this file, whose arguments begin with BUILD PLUGIN GUEST.

Debian's slurmctld, two slurmd and munged run in mount, pid, network, IPC and UTS namespaces of their own, as root, with
all their files in a temporary folder; nothing of the machine's own Slurm is read or written. Each node has a /dev/shm of
its own, and so a fake GPU and ledgers of its own. 77, skipped, where something of it is missing (as root:
scripts/setup.sh slurm).
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import time

BUILD, PLUGIN, GUEST = (pathlib.Path(word).absolute() for word in sys.argv[1:4])
SOURCE = pathlib.Path(__file__).absolute().parents[2]
TOOLS = ("slurmctld", "slurmd", "srun", "sbatch", "salloc", "scancel", "scontrol", "sinfo", "squeue", "munged",
         "unshare", "nsenter", "ip", "mount")
NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--net", "--ipc", "--uts", "--kill-child"]
INSIDE = "CUSLICE_TEST_SLURM"  # the folder, in the process that is in the namespaces
GPU = "1xt4"
NODES = {"n1": (4,), "n2": (4,)}      # the shards of each of their GPUs, by gres.conf
PAIRS = {"n3": (4, 4), "n4": (2, 6)}  # those of a second partition, `pairs`
MEMORY = 15843721216  # bytes, of a fake T4
MIB = 1 << 20
PATIENCE = 60  # seconds for what takes one or two


def skip(why):
    print("SKIPPED:", why)
    sys.exit(77)


def outside():
    """Starts this program again in namespaces, or says why it can't."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.geteuid() != 0:
        skip("Slurm's daemons are started by root")
    if not PLUGIN.is_file():
        skip("the plugin isn't built: there is no slurm/spank.h (libslurm-dev)")
    for tool in TOOLS:
        if not shutil.which(tool):
            skip(f"there is no {tool} here")
    if subprocess.run([*NAMESPACES, "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"], capture_output=True).returncode:
        skip("namespaces can't be made here")
    with tempfile.TemporaryDirectory(prefix="cuslice-slurm-") as folder:
        os.environ[INSIDE] = folder
        return subprocess.run([*NAMESPACES, sys.executable, *sys.argv]).returncode


class Cluster:
    """munged, slurmctld and the nodes n1 and n2, each with one GPU of four shards; with those of PAIRS, if wanted."""

    def __init__(self, folder, pairs=False):
        self.folder = folder
        self.nodes = NODES | (PAIRS if pairs else {})
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SLURM_CONF": str(folder / "slurm.conf"),
                            "CUSLICE_FAKE": GPU, "LD_LIBRARY_PATH": str(BUILD / "lib/cuslice/fake")}
        run("ip", "link", "set", "lo", "up")
        addresses = {host: f"10.9.0.{number}" for number, host in enumerate(["control", *self.nodes], 1)}
        for address in addresses.values():
            run("ip", "address", "add", f"{address}/32", "dev", "lo")
        run("hostname", "control")
        hosts = self.write("hosts", "".join(f"{address} {host}\n" for host, address in addresses.items())
                           + "127.0.0.1 localhost\n")
        run("mount", "--bind", hosts, "/etc/hosts")
        self.install()
        self.plugin()
        self.start_munge()
        for device in ("gpu0", "gpu1"):  # Slurm wants devices, here that of /dev/null
            os.mknod(folder / device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        gres = nodes = ""
        for node, shards in self.nodes.items():
            gres += "".join(f"NodeName={node} Name=gpu File={folder}/gpu{gpu}\n" for gpu in range(len(shards)))
            if len(set(shards)) == 1:
                gres += f"NodeName={node} Name=shard Count={sum(shards)}\n"
            else:
                gres += "".join(f"NodeName={node} Name=shard Count={count} File={folder}/gpu{gpu}\n"
                                for gpu, count in enumerate(shards))
            nodes += (f"NodeName={node} NodeAddr={addresses[node]} NodeHostname={node} Port={17000 + int(node[1:])} CPUs=16 "
                      f"Gres=gpu:{len(shards)},shard:{sum(shards)}\n")
        self.write("gres.conf", gres)
        self.write("slurm.conf", f"""
ClusterName=test
SlurmctldHost=control(10.9.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
PlugStackConfig={folder}/plugstack.conf
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
KillWait=1
GresTypes=gpu,shard
{nodes}PartitionName=all Nodes={",".join(NODES)} Default=YES State=UP
{"PartitionName=pairs Nodes=" + ",".join(PAIRS) if pairs else ""}
""")
        (folder / "state").mkdir()
        self.daemon("slurmctld", "slurmctld", "-D")
        for node in self.nodes:
            (folder / f"spool-{node}").mkdir()
            # A process that keeps the node's /dev/shm, which is not lost when slurmd is.
            self.daemon(node, "unshare", "--mount", "sh", "-c",
                        f"mount -t tmpfs tmpfs /dev/shm && echo $$ > {folder}/node-{node}.pid && exec sleep infinity")
            self.wait((folder / f"node-{node}.pid").exists, "the node has no files")
            self.start_node(node)
        self.wait(lambda: self.call("sinfo", "--noheader", "-N", "-o", "%T").stdout.split() == ["idle"] * len(self.nodes),
                  "the nodes are not idle")

    def start_node(self, node):
        self.daemon(node, "nsenter", f"--mount=/proc/{(self.folder / f'node-{node}.pid').read_text().strip()}/ns/mnt",
                    "slurmd", "-D", "-N", node)

    def fail_node(self, node):
        """All that is on the node is killed at once, slurmd and the tasks of jobs, as where the power fails."""
        keeper = (self.folder / f"node-{node}.pid").read_text().strip()
        place = os.stat(f"/proc/{keeper}/ns/mnt").st_ino
        killed = 0
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if process.name != keeper and os.stat(process / "ns/mnt").st_ino == place:
                    os.kill(int(process.name), 9)
                    killed += 1
            except OSError:
                continue
        return killed

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def install(self):
        """The plugin where an installation has it, below the folder of the library."""
        self.library = self.folder / "lib/cuslice/libcuslice.so"
        (self.library.parent / "slurm").mkdir(parents=True)
        for path in (BUILD / "lib/cuslice").iterdir():
            if path.name != "slurm":
                (self.library.parent / path.name).symlink_to(path)
        shutil.copy(PLUGIN, self.library.parent / "slurm/cuslice.so")
        (self.folder / "bin").mkdir()
        (self.folder / "bin/cuslice").symlink_to(BUILD / "bin/cuslice")

    def plugin(self, arguments=f"shards_per_gpu=4 gpu_memory={MEMORY // 1024}KiB"):
        """What plugstack.conf says from now on; None: nothing."""
        plugin = self.library.parent / "slurm/cuslice.so"
        self.write("plugstack.conf", "" if arguments is None else f"required {plugin} {arguments}\n")

    def start_munge(self):
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        files = [f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed")]
        self.daemon("munge", "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", *files)
        self.wait((self.folder / "munge.socket").exists, "munged didn't start")

    def daemon(self, name, *command):
        with open(self.folder / f"{name}.out", "ab") as out:
            subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                             env=self.environment | {"LD_LIBRARY_PATH": ""})

    def wait(self, condition, otherwise):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                for path in sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")]):
                    print(f"--- {path.name}", path.read_text(errors="replace")[-2000:], sep="\n", file=sys.stderr)
                raise AssertionError(otherwise)
            time.sleep(0.1)

    def call(self, *command, **variables):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, env=self.environment | variables)

    def holders(self, node="n1"):
        """What `cuslice ps` lists there."""
        shown = self.call("srun", "-Q", "-w", node, BUILD / "bin/cuslice", "ps", "--json", "--fake", GPU)
        return json.loads(shown.stdout)["processes"]


class Job:
    """A program that takes what it gets in blocks of 64 MiB, and holds it until the job is to end."""

    count = 0

    def __init__(self, cluster, *options, how="srun", tasks=1):
        Job.count += 1
        self.cluster, self.tasks = cluster, tasks
        self.base = cluster.folder / f"job{Job.count}"
        # All ranks make a context; then one after the other takes what there is.
        script = cluster.write(f"job{Job.count}.sh", f"""#!/bin/bash
echo $SLURM_JOB_ID > {self.base}.id
rank=${{SLURM_PROCID:-0}}
has() {{ [ "$(cat {self.base}.$1.out 2>/dev/null | wc -l)" -ge $2 ]; }}
{{ printf 'init\nretain 0\n'
  for other in {" ".join(map(str, range(tasks)))}; do until has $other 2; do sleep 0.05; done; done
  until [ $rank = 0 ] || has $((rank - 1)) 4; do sleep 0.05; done
  printf 'fill {64 * MIB}\ninfo\n'
  until [ -e {self.base}.end ]; do sleep 0.05; done; }} |
  {{ echo $BASHPID > {self.base}.$rank.pid; exec {GUEST} linked; }} > {self.base}.$rank.out 2> {self.base}.$rank.err &
until has $rank 4; do sleep 0.05; done
echo yes > {self.base}.$rank.done
wait
""")
        script.chmod(0o755)
        steps = ["srun", "-Q", f"-n{tasks}", script]
        words = {"srun": ["srun", "-Q", f"-n{tasks}", *options, script],
                 "sbatch": ["sbatch", "-Q", "--wait", f"-n{tasks}", "-o", f"{self.base}.log", *options, script],
                 "salloc": ["salloc", "-Q", f"-n{tasks}", *options, *steps]}[how]
        with open(f"{self.base}.err", "wb") as err:
            self.process = subprocess.Popen([str(word) for word in words], env=cluster.environment, stderr=err,
                                            stdin=subprocess.DEVNULL)

    def read(self, name):
        path = pathlib.Path(f"{self.base}.{name}")
        return path.read_text() if path.exists() else ""

    def held(self):
        """Bytes that the blocks of each rank take, once all have been refused; and what each takes for its limit."""
        self.cluster.wait(lambda: all(self.read(f"{rank}.done") for rank in range(self.tasks)),
                          f"{self.base}: nothing was refused: {self.read('err')}")
        blocks, limits = [], []
        for rank in range(self.tasks):
            init, retain, fill, info = self.read(f"{rank}.out").splitlines()
            assert (init, retain, fill.split()[0]) == ("0", "0", "2"), (init, retain, fill, self.read(f"{rank}.err"))
            blocks.append(int(fill.split()[1]) * 64 * MIB)
            limits.append(int(info.split()[2]))
        return blocks, limits

    def id(self):
        self.cluster.wait(lambda: self.read("id"), "the job didn't start")
        return self.read("id").strip()

    def end(self):
        pathlib.Path(f"{self.base}.end").touch()
        return self.process.wait(PATIENCE)


def run(*command):
    subprocess.run([str(word) for word in command], check=True)
