#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs under a Slurm of two nodes, killed at random moments.

storm.py BUILD PLUGIN GUEST [JOBS [KILLS]] [--without-plugin]

500 jobs with 1,000 kills, unless said otherwise. Batch jobs, steps and ranks, srun, salloc and a launcher within a job
are cancelled with several signals, killed and requeued; their slurmstepd and their srun are killed, a node's slurmd,
and all that runs on a node. Meanwhile another process looks at the fake GPUs' books: no job may hold more than its
slice. In the end nothing may be left over. Exits 1 otherwise, as with --without-plugin, where jobs take what they want.

What is drawn follows from STORM_SEED, or 1; where a process stands when it is killed does not. cluster.py has the
Slurm, and says where this is skipped.
"""
import collections
import fcntl
import json
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import time

from cluster import BUILD, GUEST, INSIDE, MEMORY, MIB, Cluster, outside

SLICES = BUILD / "lab/slurm/slices"
NODES = ("n1", "n2")
AT_ONCE = 14  # jobs that run or wait for a shard
SIGNALS = ("TERM", "INT", "HUP", "USR1", "KILL")
ENDS = {0} | {128 + getattr(signal, f"SIG{name}") for name in SIGNALS}  # of the programs
ANSWERS = {"0", "2", "201", "cuslice:"}  # granted, out of memory, no context after one was refused, the library's lines
CALM = 300  # seconds for all to end


class Job:
    """A script with programs that take and give memory, and hold some until it may end."""

    def __init__(self, storm, number):
        self.storm, self.base = storm, storm.folder / str(number)
        draw = storm.random
        self.hold = open(f"{self.base}.hold", "wb")  # programs wait for a lock of it
        fcntl.flock(self.hold, fcntl.LOCK_EX)
        self.ranks = draw.randint(1, 3)
        for rank in range(3):
            pathlib.Path(f"{self.base}.{rank}.in").write_text(commands(draw))
        program = f"{storm.program} {self.base}"
        one_after_another = "".join(f"SLURM_PROCID={rank} {program} & " for rank in range(self.ranks)) + "wait"
        steps = "".join(f"srun -Q --exact -n1 {storm.gres(1)} {program} & " for _ in range(self.ranks)) + "wait"
        launch = f"{storm.cluster.folder}/bin/cuslice run --limit {draw.randint(500, 3000)}MiB -- {program}"
        self.how = draw.choice(("batch", "batch", "steps", "ranks", "srun", "salloc", "launch"))
        if storm.without_plugin and self.how == "launch":
            self.how = "batch"
        body = {"batch": one_after_another, "steps": steps, "launch": launch,
                "ranks": f"srun -Q -n{self.ranks} {program}"}.get(self.how)
        # Slurm gives a shard away while what held it is still ending.
        environment = {"CUSLICE_WAIT": "100s", "TMPDIR": storm.temporary, "STORM_JOB": str(number)}
        options, environment["STORM_SLICE"] = self.draw_slice(draw)
        words = ["-N1", f"-n{self.ranks}", *options]
        if body:
            pathlib.Path(f"{self.base}.sh").write_text(f"#!/bin/bash\n{body}\n")
            words = ["sbatch", "--parsable", "--requeue", "-o", f"{self.base}.log", *words, f"{self.base}.sh"]
        elif self.how == "srun":
            words = ["srun", "-Q", *words, *shlex.split(program)]
        else:
            words = ["salloc", "-Q", *words, "srun", "-Q", *shlex.split(program)]
        with open(f"{self.base}.err", "wb") as err:
            self.client = subprocess.Popen(words, env=storm.cluster.environment | environment, stdout=err, stderr=err,
                                           stdin=subprocess.DEVNULL)

    def draw_slice(self, draw):
        """Options, and the bytes of a GPU that they may have."""
        shards = draw.choice((1, 1, 1, 1, 1, 2, 2, 3, 4))
        if self.how == "steps":
            shards = max(shards, self.ranks)
        most, options = MEMORY * shards // 4, [f"--gres=shard:{shards}"]
        if self.storm.without_plugin:
            return options, str(most)
        kind = draw.randrange(8)
        if kind == 0:
            options += ["--cuslice-fraction=0.2"]
            most = min(most, MEMORY // 5)
        elif kind == 1:
            options += ["--cuslice-limit=2GiB"]
            most = 2 << 30
        elif kind == 2:
            options += ["--cuslice-split=2"]
        elif kind == 3 and self.how != "steps":
            options, most = ["--cuslice-fraction=0.25"], MEMORY // 4
        return options, str(most)

    def let_end(self):
        self.hold.close()

    def may_end(self):
        return self.hold.closed


def commands(draw):
    lines = ["letchange free", "init", "retain 0"]
    for block in range(draw.randint(1, 12)):
        lines.append(f"alloc x{block} {draw.randint(1, 64 * MIB)}")
        if draw.random() < 0.25:
            lines.append(f"fill {draw.randint(128 * MIB, 512 * MIB)}")
        if draw.random() < 0.33:
            lines.append("freeall")
    return "\n".join([*lines, f"fill {64 * MIB}" if draw.random() < 0.3 else f"alloc last {MIB}"]) + "\n"


class Storm:
    def __init__(self, cluster, without_plugin=False):
        self.cluster, self.without_plugin = cluster, without_plugin
        self.random = random.Random(int(os.environ.get("STORM_SEED", "1")))
        self.folder = cluster.folder / "storm"
        self.temporary = str(cluster.folder / "storm-tmp")
        self.folder.mkdir()
        os.mkdir(self.temporary)
        self.program = cluster.write("program.sh", f"""#!/bin/bash
(cat $1.${{SLURM_PROCID:-0}}.in; exec flock $1.hold true) | {GUEST} linked >> {self.folder}/answers 2>&1
echo ${{PIPESTATUS[1]}} >> {self.folder}/ends
""")
        self.program.chmod(0o755)
        self.jobs = {}     # by number, those that have not ended
        self.started = 0
        self.kills = collections.Counter()
        self.ways = collections.Counter()
        self.slurm_ids = {}  # those of jobs, by number
        self.how = {}
        self.recounts = 0
        if without_plugin:
            cluster.plugin(None)

    def gres(self, shards):
        return f"--gres=shard:{shards}"

    def shared_memory(self, node):
        keeper = (self.cluster.folder / f"node-{node}.pid").read_text().strip()
        return pathlib.Path(f"/proc/{keeper}/root/dev/shm")

    # ---- what there is ----------------------------------------------------------------------------------------------

    def processes(self):
        """{number: [(pid, its first word)]}, the jobs' processes and clients; and slurmstepds, by Slurm's number."""
        found, keepers = collections.defaultdict(list), collections.defaultdict(list)
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if words[0].startswith("slurmstepd: ["):
                    keepers[re.match(r"slurmstepd: \[(\d+)", words[0])[1]].append(int(path.name))
                    continue
                environment = (path / "environ").read_bytes()
            except OSError:
                continue
            mark = re.search(rb"(?:^|\0)STORM_JOB=(\d+)\0", environment)
            if not mark:
                continue
            number = int(mark[1])
            found[number].append((int(path.name), os.path.basename(words[0])))
            slurm = re.search(rb"(?:^|\0)SLURM_JOB_ID=(\d+)\0", environment)
            if slurm:
                self.slurm_ids[number] = slurm[1].decode()
        return found, keepers

    def queue(self):
        shown = self.cluster.call("squeue", "--noheader", "-o", "%A %t %r").stdout
        return [line.split(maxsplit=2) for line in shown.splitlines()]

    # ---- what is done -----------------------------------------------------------------------------------------------

    def begin(self):
        job = Job(self, self.started)
        self.jobs[self.started] = job
        self.ways[job.how] += 1
        self.how[self.started] = job.how
        self.started += 1

    def kill_one(self):
        """Somebody, somehow. What can't be done now is not counted."""
        found, keepers = self.processes()
        ids = {number: self.slurm_ids[number] for number in found if number in self.slurm_ids and number in self.jobs}
        if not ids:
            return
        draw = self.random
        number = draw.choice(sorted(ids))
        job, slurm = self.jobs[number], ids[number]
        inner = [pid for pid, name in found[number] if name not in ("srun", "salloc", "sbatch")]
        clients = [pid for pid, name in found[number] if name in ("srun", "salloc")]
        way = draw.choices(("process", "slurmstepd", "client", "scancel", "scancel -s", "scancel -f", "scancel -b",
                            "scancel -H", "scancel step", "requeue", "slurmd", "node"),
                           (38, 6, 5, 12, 10, 8, 4, 4, 5, 6, 1, 1))[0]
        signalled = draw.choice(SIGNALS)
        if way == "process":
            done = kill(draw.choice(inner)) if inner else False
        elif way == "slurmstepd":
            done = kill(draw.choice(keepers[slurm])) if keepers[slurm] else False
        elif way == "client":
            done = kill(draw.choice(clients)) if clients else False
        elif way == "slurmd":
            done = self.kill_slurmd(draw.choice(NODES))
        elif way == "node":
            done = self.fail_node(draw.choice(NODES))
        elif way == "requeue":
            done = self.call("scontrol", "requeue", slurm)
        elif way == "scancel step" and job.how in ("batch", "launch"):
            return  # scancel tries for seconds where there is no such step
        else:
            words = {"scancel": [slurm], "scancel -s": ["-s", signalled, slurm],
                     "scancel -f": ["-f", "-s", signalled, slurm],
                     "scancel -b": ["-b", "-s", signalled, slurm], "scancel -H": ["-H", slurm],
                     "scancel step": ["-s", "KILL", slurm + ".0"]}[way]
            done = self.call("scancel", *words)
        if done:
            self.kills[way] += 1
        # After two of them on average it may end by itself.
        if draw.random() < 0.5:
            job.let_end()

    def call(self, *words):
        """Whether it was done. scancel tries for a minute with a job that is just being queued again."""
        try:
            return subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=10,
                                  env=self.cluster.environment).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def slurmd(self, node):
        """Its process, or None."""
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (path / "cmdline").read_bytes() == f"slurmd\0-D\0-N\0{node}\0".encode():
                    return int(path.name)
            except OSError:
                continue
        return None

    def kill_slurmd(self, node):
        """And starts it again: what it looked after goes on."""
        if not kill(self.slurmd(node)):
            return False
        self.cluster.start_node(node)
        return True

    def fail_node(self, node):
        """All that is on it is killed, and it comes back."""
        killed = self.cluster.fail_node(node)
        self.call("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        self.cluster.start_node(node)
        self.call("scontrol", "update", f"nodename={node}", "state=resume")
        return killed > 0

    def attend(self):
        """What an administrator does: nodes and jobs that Slurm has put aside go on, and what has no process ends."""
        found, keepers = self.processes()
        for node in NODES:
            if self.slurmd(node) is None:  # one that came too soon after another one
                self.cluster.start_node(node)
        states = self.node_states()
        for node, state in states.items():
            if state.startswith(("down", "drain", "error", "fail")):
                self.call("scontrol", "update", f"nodename={node}", "state=resume")
        numbers = {slurm: number for number, slurm in self.slurm_ids.items()}
        queued = set()
        queue = self.queue()
        # Slurm 22.05 loses count of a node's shards now and then ("dealloc of node n1 bad node_offset" in its log): a
        # job of all shards waits for ever then, on an idle node.
        stuck = set(states.values()) == {"idle"} and any(why == "Resources" for _, _, why in queue)
        if stuck and self.stuck:
            self.recounts += self.recount()
        self.stuck = stuck and not self.stuck
        for slurm, state, why in queue:
            queued.add(slurm)
            if state == "PD" and "BeginTime" in why:
                self.call("scontrol", "update", f"jobid={slurm}", "starttime=now")
            if state == "PD" and ("held" in why.lower() or "launch failed" in why):
                self.call("scontrol", "release", slurm)
            if state == "R":
                idle = not keepers[slurm] and not any(name not in ("srun", "salloc", "sbatch")
                                                      for _, name in found.get(numbers.get(slurm), ()))
                if idle and slurm in self.idle:
                    self.call("scancel", slurm)
                self.idle = self.idle | {slurm} if idle else self.idle - {slurm}
        for number, job in list(self.jobs.items()):
            if job.client.poll() is None or number in found:
                continue
            slurm = self.slurm_ids.get(number) or submitted(job)
            if slurm:
                self.slurm_ids[number] = slurm
            if slurm not in queued:
                job.let_end()
                del self.jobs[number]
        # A node that goes down after its last job would keep the next one waiting.
        return not queued and not found and not any(keepers.values()) and set(states.values()) == {"idle"}

    def node_states(self):
        return dict(line.split() for line in
                    self.cluster.call("sinfo", "--noheader", "-N", "-o", "%N %T").stdout.splitlines())

    idle = frozenset()  # jobs that run without a process, when they were looked at last
    stuck = False       # jobs waited for an idle node then

    def recount(self):
        """Has Slurm count the shards anew. Whether it could be told."""
        return self.call("scontrol", "reconfigure")

    def rage(self, jobs, kills):
        looked = 0
        while self.started < jobs or self.kills.total() < kills:
            while len(self.jobs) < AT_ONCE and self.started - jobs < AT_ONCE:
                self.begin()
            self.kill_one()
            if time.monotonic() - looked > 2:
                self.attend()
                looked = time.monotonic()
                print(f"{self.started} jobs, {self.kills.total()} kills", file=sys.stderr, flush=True)

    def calm(self):
        """Lets all jobs go on to their ends."""
        end = time.monotonic() + CALM
        while True:
            for job in self.jobs.values():
                job.let_end()
            if self.attend() and not self.jobs:
                return
            if time.monotonic() > end:
                found, keepers = self.processes()
                raise AssertionError(f"still there: {dict(found)}, {dict(keepers)}, {self.queue()}")
            time.sleep(0.3)

    # ---- what is to be seen -----------------------------------------------------------------------------------------

    def whole(self, node, *options):
        """Blocks that a job has which is alone and has the whole GPU."""
        try:
            shown = self.cluster.call("srun", "-Q", "-w", node, "--gres=shard:4", *options, "sh", "-c",
                                      f"printf 'init\\nretain 0\\nfill {16 * MIB}\\n' | {GUEST} linked",
                                      STORM_SLICE=str(MEMORY))
        except subprocess.TimeoutExpired:
            used = re.findall(r"GresUsed=\S*", self.cluster.call("scontrol", "--detail", "show", "node", node).stdout)
            self.call("scancel", "--state=PENDING", "--user=root")
            return [f"srun doesn't end: {self.queue()}, {self.node_states()}, {used}"]
        return shown.stdout.split()

    def listing(self):
        """Files in the nodes' shared memory, and in the folder for what is temporary. Marks of processes (.alive) aren't
        listed: the next process to look removes those of the dead."""
        folders = [*map(self.shared_memory, NODES), pathlib.Path(self.temporary)]
        found = [[path for path in folder.rglob("*") if path.suffix != ".alive"] for folder in folders]
        return [sorted(str(path.relative_to(folder)) for path in paths) for folder, paths in zip(folders, found)]

    def run(self, jobs, kills):
        """What is wrong, a line each."""
        begun = time.monotonic()
        whole = [self.whole(node) for node in NODES]
        for node in () if self.without_plugin else NODES:  # so that the parts' ledgers are there, too
            assert self.whole(node, "--cuslice-split=2")[:2] == ["0", "0"]
        assert all(blocks[:3] == ["0", "0", "2"] and int(blocks[3]) > 800 for blocks in whole), whole
        files = self.listing()
        places = [str(self.shared_memory(node)) for node in NODES]
        watcher = subprocess.Popen([SLICES, "watch", *places], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        wrong = []
        self.rage(jobs, kills)
        try:
            self.calm()
        except AssertionError as error:
            wrong.append(str(error))
        seen = json.loads(watcher.communicate()[0])
        numbers = {slurm: number for number, slurm in self.slurm_ids.items()}
        for line in seen["over"]:
            number = numbers.get(line.split()[1])
            wrong.append(f"{line}; it is a job of {self.how.get(number)}")
        if seen["strangers"]:
            wrong.append(f"{seen['strangers']} times a process of no job held something")
        for node in NODES:
            self.cluster.holders(node)  # a reader takes back what the dead held
        left = subprocess.run([SLICES, "left", *places], capture_output=True, text=True, check=True).stdout.splitlines()
        wrong += [f"left over: {line}" for line in left if not json.loads(line)["nothing"]]
        # The books, the GPU's ledger and those of its parts.
        if len(left) != (1 if self.without_plugin else 4) * len(NODES):
            wrong.append(f"files are missing: {left}")
        if self.listing() != files:
            wrong.append(f"files: {self.listing()}, and before {files}")
        self.recount()
        again = [self.whole(node) for node in NODES]
        if again != whole:
            wrong.append(f"the whole GPU: {again}, and before {whole}")
        wrong += self.check_answers()
        took = time.monotonic() - begun
        print(f"{self.started} jobs ({shown(self.ways)}), {self.kills.total()} kills ({shown(self.kills)}), "
              f"{took:.0f} s")
        print(f"{self.recounts} times jobs waited for an idle node until Slurm counted its shards anew")
        print(f"{seen['looks']} looks at a GPU in use, in {seen['looks'] - seen['unsettled']} of which nothing "
              f"changed: at most {seen['most_jobs']} jobs on a GPU, and {seen['fullest'] * 100:.1f}% of a slice held")
        return wrong

    def check_answers(self):
        """No program has died of anything but what it was killed by, no call has had another answer than it may."""
        answers = collections.Counter(line.split(maxsplit=1)[0] for line in
                                      (self.folder / "answers").read_text(errors="replace").splitlines() if line)
        ends = collections.Counter((self.folder / "ends").read_text().split())
        print(f"answers: {shown(answers)}; ends of programs: {shown(ends)}")
        wrong = [f"{count} times the answer {answer}" for answer, count in answers.items() if answer not in ANSWERS]
        wrong += [f"{count} times a program's end {code}" for code, count in ends.items() if int(code) not in ENDS]
        if answers["0"] < self.started:
            wrong.append("too few answers")
        return wrong


def submitted(job):
    """Slurm's number of a job that never ran, from what sbatch said."""
    found = re.search(r"^(\d+)$", pathlib.Path(f"{job.base}.err").read_text(errors="replace"), re.M)
    return found[1] if found else None


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (OSError, TypeError):
        return False
    return True


def shown(counts):
    return ", ".join(f"{what} {count}" for what, count in counts.most_common())


def main():
    words = [word for word in sys.argv[4:] if word != "--without-plugin"]
    jobs, kills = (int(word) for word in (words + ["500", "1000"][len(words):])[:2])
    cluster = Cluster(pathlib.Path(os.environ.pop(INSIDE)))
    wrong = Storm(cluster, "--without-plugin" in sys.argv).run(jobs, kills)
    for line in wrong[:40]:
        print("WRONG:", line)
    print(f"{len(wrong)} things are wrong" if wrong else "nothing is left over, and no job held more than its slice")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main() if INSIDE in os.environ else outside())
