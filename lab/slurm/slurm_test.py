#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs in slices, under a Slurm of two nodes on this machine:  slurm_test.py BUILD PLUGIN GUEST [test...]

cluster.py has the Slurm, and says where the tests are skipped.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from cluster import BUILD, GPU, GUEST, INSIDE, MEMORY, MIB, PATIENCE, PLUGIN, SOURCE, Cluster, Job, outside


class Slices(unittest.TestCase):
    def setUp(self):
        CLUSTER.plugin()
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            job.end()

    def job(self, *options, **how):
        job = Job(CLUSTER, "-w", "n1", *options, **how)
        self.jobs.append(job)
        return job

    def variables(self, *options, tasks=1, **variables):
        """What a task finds in its environment."""
        shown = CLUSTER.call("srun", "-Q", f"-n{tasks}", *options, "env", **variables)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line), shown.stderr

    def refused(self, *command, **variables):
        shown = CLUSTER.call(*command, **variables)
        self.assertNotEqual(shown.returncode, 0, shown.stdout)
        self.assertNotIn("ran", shown.stdout)
        return [line for line in shown.stderr.splitlines() if "cuslice: " in line]

    def test_each_of_four_jobs_has_its_quarter(self):
        quarter = MEMORY // 4
        for how in ("srun", "sbatch", "salloc"):
            self.job("--gres=shard:1", how=how)
        for job in self.jobs:
            blocks, limits = job.held()
            self.assertEqual(limits, [quarter])
            self.assertLessEqual(sum(blocks), quarter)
            self.assertGreater(sum(blocks), quarter - 350 * MIB)  # its context and a block
            self.assertIn("The limit is from CUSLICE_FRACTION", job.read("0.err"))
        fourth = self.job("--gres=shard:1")
        self.assertEqual(fourth.held()[1], [quarter])
        holders = CLUSTER.holders()
        self.assertEqual(len(holders), 4, holders)
        self.assertEqual({row["limit"] for row in holders}, {quarter})
        # The other node's GPU is another one.
        self.assertEqual(CLUSTER.holders("n2"), [])
        for job in self.jobs:
            self.assertEqual(job.end(), 0)
        self.assertEqual(CLUSTER.holders(), [])

    def test_without_the_plugin_a_job_takes_what_it_wants(self):
        CLUSTER.plugin(None)
        job = self.job("--gres=shard:1")
        blocks, limits = job.held()
        self.assertGreater(sum(blocks), MEMORY // 4 * 3)
        self.assertEqual(limits, [MEMORY])

    def test_ranks_and_steps_of_a_job_share_its_slice(self):
        for how in ("srun", "salloc"):
            with self.subTest(how):
                job = self.job("--gres=shard:2", how=how, tasks=3)
                blocks, limits = job.held()
                self.assertEqual(limits, [MEMORY // 2] * 3)
                self.assertLessEqual(sum(blocks), MEMORY // 2)
                self.assertGreater(blocks[0], MEMORY // 2 - 400 * MIB)
                self.assertEqual(job.end(), 0)

    def test_cancelled_requeued_and_killed_jobs_leave_nothing(self):
        cancelled, killed = self.job("--gres=shard:1", how="sbatch"), self.job("--gres=shard:1")
        requeued = self.job("--gres=shard:1", "--requeue", how="sbatch")
        for job in self.jobs:
            job.held()
        self.assertEqual(len(CLUSTER.holders()), 3)
        done = CLUSTER.call("scontrol", "requeuehold", requeued.id())
        self.assertEqual(done.returncode, 0, done.stderr)
        CLUSTER.wait(lambda: len(CLUSTER.holders()) == 2, "a requeued job holds something")
        CLUSTER.call("scancel", requeued.id())
        self.assertEqual(CLUSTER.call("scancel", cancelled.id()).returncode, 0)
        os.kill(int(killed.read("0.pid")), 9)
        killed.end()
        cancelled.process.wait(PATIENCE)  # whatever it says: its script may have ended before it was killed
        CLUSTER.wait(lambda: CLUSTER.holders() == [], "something is left over")
        again = self.job("--gres=shard:4")
        self.assertEqual(again.held()[1], [MEMORY])

    def peaks(self, job, node="n1", begin=0):
        """What that node's log says of a job's peak, from this place on: [(step, MiB, of MiB)]."""
        text = (CLUSTER.folder / f"slurmd-{node}.log").read_text()[begin:]
        found = re.findall(rf"\[{job}\.(\w+)\] cuslice: slurm-{job} held at most (\d+) MiB of (\d+) MiB on GPU-", text)
        return [(step, int(most), int(limit)) for step, most, limit in found]

    def test_a_node_that_fails_gives_everything_back_and_its_job_is_queued_again(self):
        requeued, _ = self.job("--gres=shard:2", "--requeue", how="sbatch"), self.job("--gres=shard:2")
        for job in self.jobs:
            job.held()
        number = requeued.id()
        self.assertEqual(len(CLUSTER.holders("n1")), 2)
        self.assertGreaterEqual(CLUSTER.fail_node("n1"), 3)  # slurmd and both programs, at least
        down = CLUSTER.call("scontrol", "update", "nodename=n1", "state=down", "reason=test")
        self.assertEqual(down.returncode, 0, down.stderr)
        CLUSTER.wait(lambda: CLUSTER.call("squeue", "--noheader", "-j", number, "-o", "%T").stdout == "PENDING\n",
                     "the job is not queued again")
        # Slurm lets it wait for two minutes.
        CLUSTER.call("scancel", number)
        CLUSTER.start_node("n1")
        CLUSTER.call("scontrol", "update", "nodename=n1", "state=resume")
        CLUSTER.wait(lambda: CLUSTER.call("sinfo", "--noheader", "-N", "-o", "%T").stdout.split() == ["idle"] * len(CLUSTER.nodes),
                     "the node doesn't come back")
        self.assertEqual(CLUSTER.holders("n1"), [])
        again = self.job("--gres=shard:4")
        self.assertEqual(again.held()[1], [MEMORY])

    def test_the_peak_is_said_at_the_end_of_each_step(self):
        # Two ranks, of whom each takes what there is; then a step that holds less.
        job = self.job("--gres=shard:2", tasks=2)
        blocks, _ = job.held()
        number = job.id()
        self.assertEqual(self.peaks(number), [])
        self.assertEqual(job.end(), 0)
        CLUSTER.wait(lambda: self.peaks(number), "nothing is said")
        (step, most, limit), = self.peaks(number)
        self.assertEqual((step, limit), ("0", round(MEMORY / 2 / MIB)))
        self.assertGreaterEqual(most, sum(blocks) // MIB)
        self.assertGreater(most, max(blocks) // MIB + 2 * 64)  # both ranks' contexts are in it
        self.assertLessEqual(most, limit)
        self.assertNotIn("held at most", job.read("err"))

    def test_the_peak_of_a_batch_job_is_of_all_its_steps_and_its_user_reads_it(self):
        CLUSTER.plugin("shards_per_gpu=4 report=stderr")
        script = CLUSTER.write("peak.sh", f"""#!/bin/sh
#SBATCH --gres=shard:1 -w n1
printf 'init\\nretain 0\\nalloc x {700 * MIB}\\n' | srun -Q {GUEST} linked
printf 'init\\nretain 0\\nalloc x {100 * MIB}\\n' | srun -Q {GUEST} linked
srun -Q true
""")
        log = CLUSTER.folder / "peak.log"
        done = CLUSTER.call("sbatch", "--parsable", "--wait", "-o", log, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        number = done.stdout.strip()
        said = re.findall(rf"^cuslice: slurm-{number} held at most (\d+) MiB of (\d+) MiB on GPU-[0-9a-f]+$",
                          log.read_text(), re.M)
        self.assertEqual(len(said), 4, log.read_text())  # three steps, and the script
        self.assertEqual(len(set(said)), 1, said)
        self.assertEqual([step for step, *_ in self.peaks(number)], ["0", "1", "2", "batch"])
        self.assertGreater(int(said[0][0]), 700)
        # A step without a slice is not asked for, and one that used no GPU has held nothing.
        for options in ([], ["--gres=shard:1"]):
            quiet = CLUSTER.call("srun", "-Q", *options, "true")
            self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_the_peak_of_an_ordinary_users_job_is_asked_for_as_that_user(self):
        # Not srun's own --uid: a job that has to wait is then told of by a message that only the user may read, to a
        # process that is still root.
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        CLUSTER.plugin("shards_per_gpu=4 report=stderr")
        CLUSTER.folder.chmod(0o755)
        run_it = [*as_nobody, "srun", "-Q", "-w", "n1", "-D", "/", "--gres=shard:1"]
        if CLUSTER.call(*run_it, "test", "-x", GUEST).returncode:
            self.skipTest("the build's folder can't be read by others")
        held = f"printf 'init\\nretain 0\\nalloc x {200 * MIB}\\n' | exec {GUEST} linked"
        done = CLUSTER.call(*run_it, "sh", "-c", held)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("held at most"), 1, done.stderr)
        self.assertNotIn("(user", done.stderr)

    def test_a_step_with_less_than_its_job_shares_the_slice_of_who_came_first(self):
        script = CLUSTER.write("steps.sh", f"""#!/bin/bash
mkfifo {CLUSTER.folder}/steps.in
{GUEST} linked < {CLUSTER.folder}/steps.in > {CLUSTER.folder}/steps.first &
exec 3> {CLUSTER.folder}/steps.in
printf 'init\\nretain 0\\n' >&3
until [ "$(wc -l < {CLUSTER.folder}/steps.first)" = 2 ]; do sleep 0.05; done
srun -Q --gres=shard:1 sh -c "printf 'init\\nretain 0\\ninfo\\n' | {GUEST} linked"
""")
        log = CLUSTER.folder / "steps.log"
        done = CLUSTER.call("sbatch", "-Q", "--wait", "--gres=shard:2", "-o", log, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(log.read_text().splitlines()[-1].split()[2], str(MEMORY // 2))

    def test_fifty_jobs_that_end_in_every_way_leave_nothing(self):
        log = CLUSTER.folder / "fifty"
        log.mkdir()
        script = CLUSTER.write("fifty.sh", f"""#!/bin/bash
#SBATCH --array=1-50 --gres=shard:1 -o /dev/null
mkfifo {log}/$SLURM_ARRAY_TASK_ID.in
{GUEST} linked < {log}/$SLURM_ARRAY_TASK_ID.in > {log}/$SLURM_ARRAY_TASK_ID.out 2> /dev/null &
exec 3> {log}/$SLURM_ARRAY_TASK_ID.in
printf 'init\\nretain 0\\nfill {256 * MIB}\\ninfo\\n' >&3
until [ "$(wc -l < {log}/$SLURM_ARRAY_TASK_ID.out)" = 4 ]; do sleep 0.05; done
case $((SLURM_ARRAY_TASK_ID % 4)) in
0) exec 3>&- ;;
1) kill -9 $! ;;
2) scancel --full --signal=KILL $SLURM_JOB_ID; sleep 60 ;;
3) kill -9 $$ ;;
esac
wait
""")
        # With proctrack/linuxproc, Slurm gives a killed script's shard away before its last process has ended.
        submitted = CLUSTER.call("sbatch", "--parsable", script, CUSLICE_WAIT="60s")
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        CLUSTER.wait(lambda: not CLUSTER.call("squeue", "--noheader").stdout, "jobs are left")
        answers = [path.read_text().splitlines() for path in log.glob("*.out")]
        self.assertEqual(len(answers), 50)
        for init, retain, fill, info in answers:
            self.assertEqual((init, retain, fill), ("0", "0", "2 14"))
            self.assertEqual(info.split()[2], str(MEMORY // 4))
        for node in ("n1", "n2"):
            CLUSTER.wait(lambda at=node: CLUSTER.holders(at) == [], "something is left over")

    def pair_job(self, shards, node="n3", **variables):
        """A job on a node of two GPUs that shows what it was given, and holds it until its input ends."""
        gate = os.pipe()
        told = CLUSTER.folder / f"pair{gate[1]}.{len(os.listdir(CLUSTER.folder))}"
        command = (f"env > {told}; (printf 'init\\nretain 0\\nfill {64 * MIB}\\ninfo\\ncount\\n'; cat) | "
                   f"{GUEST} linked > {told}.out 2> {told}.err")
        process = subprocess.Popen(["srun", "-Q", "-p", "pairs", "-w", node, f"--gres=shard:{shards}", "sh", "-c", command],
                                   stdin=gate[0], env=CLUSTER.environment | {"CUSLICE_FAKE": "2xt4"} | variables)
        os.close(gate[0])

        def end():
            os.close(gate[1])
            process.wait(PATIENCE)
        self.addCleanup(end)
        answers = pathlib.Path(f"{told}.out")
        CLUSTER.wait(lambda: answers.exists() and answers.read_text().count("\n") == 5, "the job doesn't come to its answers")
        return dict(line.split("=", 1) for line in told.read_text().splitlines() if "=" in line), \
            [line.split() for line in answers.read_text().splitlines()]

    def test_jobs_on_a_node_of_two_gpus_each_have_their_part_of_one(self):
        # Slurm puts the second one on the other GPU, whatever the user's variables say.
        mine = {"SLURM_STEP_GPUS": "0", "CUDA_VISIBLE_DEVICES": "0", "SLURM_GPUS_ON_NODE": "2"}
        for shards, gpu, variables in ((2, "0", {}), (3, "1", mine), (2, "0", {}), (1, "1", {})):
            found, (init, retain, fill, info, count) = self.pair_job(shards, **variables)
            self.assertEqual((found["SLURM_SHARDS_ON_NODE"], found["SLURM_GPUS_ON_NODE"]), (str(shards), "1"))
            self.assertEqual((found["SLURM_STEP_GPUS"], found["CUDA_VISIBLE_DEVICES"]), (gpu, gpu))
            self.assertEqual(found["CUSLICE_FRACTION"], f"{shards / 4:.9f}")
            self.assertEqual((init, retain, count), (["0"], ["0"], ["0", "1"]))
            self.assertEqual(info[2], str(MEMORY * shards // 4))
            self.assertGreater(int(fill[1]) * 64 * MIB, MEMORY * shards // 4 - 300 * MIB)

    def test_a_batch_job_and_its_step_on_the_second_gpu(self):
        self.pair_job(3)
        log = CLUSTER.folder / "second.log"
        show = "env | grep -E '^(CUSLICE_FRACTION|CUDA_VISIBLE_DEVICES|SLURM_SHARDS_ON_NODE)=' | sort"
        done = CLUSTER.call("sbatch", "--wait", "-p", "pairs", "-w", "n3", "--gres=shard:2", "-o", log, "--wrap",
                            f"{show}; srun -Q sh -c \"{show}\"; srun -Q --gres=shard:1 sh -c \"{show}\"")
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = [line for shards in (2, 2, 1) for line in
                    ("CUDA_VISIBLE_DEVICES=1", f"CUSLICE_FRACTION={shards / 4:.9f}", f"SLURM_SHARDS_ON_NODE={shards}")]
        self.assertEqual(log.read_text().splitlines(), expected)

    def test_slurm_deals_shards_out_evenly_and_from_one_gpu(self):
        # Each GPU has four of eight shards, whatever gres.conf says of the two (2 and 6); and five are never started.
        found, answers = self.pair_job(4, node="n4")
        self.assertEqual((found["SLURM_STEP_GPUS"], found["CUSLICE_FRACTION"]), ("0", "1"))
        self.assertEqual(answers[3][2], str(MEMORY))
        waits = CLUSTER.call("srun", "-p", "pairs", "-w", "n4", "--gres=shard:5", "--immediate=3", "true")
        self.assertNotEqual(waits.returncode, 0)
        self.assertIn("Unable to allocate resources", waits.stderr)

    def test_shards_of_several_gpus_give_each_what_it_gave_at_least(self):
        # Set by Slurm 24.11 with MULTIPLE_SHARING_GRES_PJ, where a job's shards lie on two GPUs; never by 22.05.
        source = CLUSTER.write("newer.c", """
#include <slurm/spank.h>
#include <stdlib.h>
SPANK_PLUGIN(newer, 1)
int slurm_spank_task_init(spank_t spank, int count, char* words[]) {
    (void)count;
    spank_setenv(spank, "SLURM_SHARDS_ON_NODE", words[0], 1);
    spank_setenv(spank, "SLURM_GPUS_ON_NODE", "2", 1);
    spank_setenv(spank, "SLURM_STEP_GPUS", "0,1", 1);
    return spank_setenv(spank, "CUDA_VISIBLE_DEVICES", "0,1", 1) == ESPANK_SUCCESS ? 0 : -1;
}
""")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", CLUSTER.folder / "newer.so", source], check=True)
        show = f"printf 'init\\nretain 0\\ninfo\\nretain 1\\ninfo\\n' | {GUEST} linked"
        for shards, quarters in ((2, 1), (5, 1), (6, 2), (7, 3), (8, 4)):
            CLUSTER.plugin()
            plugin = (CLUSTER.folder / "plugstack.conf").read_text()
            CLUSTER.write("plugstack.conf", f"required {CLUSTER.folder}/newer.so {shards}\n" + plugin)
            done = CLUSTER.call("srun", "-Q", "-p", "pairs", "-w", "n3", "--gres=shard:1", "sh", "-c", show,
                                CUSLICE_FAKE="2xt4")
            totals = [line.split()[2] for line in done.stdout.splitlines() if len(line.split()) == 3]
            self.assertEqual(totals, [str(MEMORY * quarters // 4)] * 2, (shards, done.stdout, done.stderr))
        # More than the GPUs have: then it isn't known what a shard is.
        CLUSTER.write("plugstack.conf", f"required {CLUSTER.folder}/newer.so 9\n" + plugin)
        line, = self.refused("srun", "-p", "pairs", "-w", "n3", "--gres=shard:1", "sh", "-c", "echo ran")
        self.assertIn("the job has 9 shards of 2 GPU(s) here, and shards_per_gpu=4 in plugstack.conf", line)

    def test_options_without_shards(self):
        for option, limit in (("--cuslice-limit=2GiB", 2 << 30), ("--cuslice-fraction=50%", MEMORY // 2)):
            job = self.job(option)
            self.assertEqual(job.held()[1], [limit])
            job.end()
        for value, parts in (("12.5%", "0.125000000"), (".4", "0.400000000"), ("1.0", "1"), ("0.000000001", "0.000000001")):
            self.assertEqual(self.variables(f"--cuslice-fraction={value}")[0]["CUSLICE_FRACTION"], parts)
        found, _ = self.variables("--cuslice-limit=1.5GiB")
        self.assertEqual(found["CUSLICE_LIMIT"], "1.5GiB")
        self.assertEqual(found["CUSLICE_JOB"], "slurm-" + found["SLURM_JOB_ID"])
        self.assertEqual(found["LD_PRELOAD"], str(CLUSTER.library))

    def test_a_job_with_neither_is_left_as_it_is(self):
        found, said = self.variables()
        self.assertEqual(said, "")
        ours = {name for name in found if name.startswith(("CUSLICE", "LD_"))}
        self.assertEqual(ours, {"CUSLICE_FAKE", "LD_LIBRARY_PATH"})

    def test_an_option_lowers_and_never_raises(self):
        shard = "--gres=shard:2"
        found, said = self.variables(shard, "--cuslice-fraction=0.25")
        self.assertEqual((found["CUSLICE_FRACTION"], said), ("0.250000000", ""))
        found, said = self.variables(shard, "--cuslice-fraction=0.75", tasks=2)
        self.assertEqual(found["CUSLICE_FRACTION"], "0.500000000")
        self.assertEqual(said.count("--cuslice-fraction=0.75 is more than the job's shards, which hold"), 1)
        found, said = self.variables(shard, "--cuslice-limit=1GiB")
        self.assertEqual((found["CUSLICE_LIMIT"], said), ("1GiB", ""))
        self.assertNotIn("CUSLICE_FRACTION", found)
        # A half is 7.38 GiB, which is 7.92 GB.
        for lower in ("7.5GB", "7500mb", "7.25GiB", "0.007T", "7554M"):
            self.assertEqual(self.variables(shard, f"--cuslice-limit={lower}")[0].get("CUSLICE_LIMIT"), lower)
        for higher in ("7.5GiB", "7.5g", "8GB", "0.0075Ti", "7555MiB"):
            self.assertNotIn("CUSLICE_LIMIT", self.variables(shard, f"--cuslice-limit={higher}")[0])
        found, said = self.variables(shard, "--cuslice-limit=8GiB")
        self.assertEqual(found["CUSLICE_FRACTION"], "0.500000000")
        self.assertNotIn("CUSLICE_LIMIT", found)
        self.assertIn("--cuslice-limit=8GiB is more than the job's shards, which hold", said)

    def test_variables_of_the_user_do_not_raise(self):
        mine = {"CUSLICE_FRACTION": "1", "CUSLICE_LIMIT": "15GiB", "CUSLICE_JOB": "mine", "SLURM_SHARDS_ON_NODE": "4",
                "CUSLICE_SETTINGS": "x"}
        found, _ = self.variables("--gres=shard:1", **mine)
        self.assertEqual(found["CUSLICE_FRACTION"], "0.250000000")
        self.assertEqual(found["CUSLICE_JOB"], "slurm-" + found["SLURM_JOB_ID"])
        self.assertFalse({"CUSLICE_LIMIT", "CUSLICE_SETTINGS"} & set(found))
        libm = next(pathlib.Path("/lib").glob("*-linux-gnu/libm.so.6"))
        shown = CLUSTER.call("srun", "-Q", f"--export=ALL,LD_PRELOAD={libm}:{CLUSTER.library}", "--gres=shard:1", "env")
        self.assertIn(f"LD_PRELOAD={CLUSTER.library}:{libm}\n", shown.stdout)

    def test_a_job_submitted_inside_another_one_does_not_join_it(self):
        found, _ = self.variables(CUSLICE_JOB="slurm-4000000", CUSLICE_FRACTION="0.1", CUSLICE_SPLIT="2")
        self.assertFalse({"CUSLICE_JOB", "CUSLICE_FRACTION", "CUSLICE_SPLIT"} & set(found))

    def test_a_split_shows_parts_of_the_slice(self):
        found, _ = self.variables("--gres=shard:2", "--cuslice-split=2")
        self.assertEqual((found["CUSLICE_SPLIT"], found["CUSLICE_FRACTION"]), ("2", "0.500000000"))
        self.assertEqual(found["CUSLICE_GPUS"], "0")
        self.assertNotIn("CUDA_VISIBLE_DEVICES", found)
        runtime = CLUSTER.library.parent / "libcuslice-runtime.so"
        self.assertEqual(found["LD_PRELOAD"], f"{CLUSTER.library}:{runtime}")
        job = self.job("--gres=shard:2", "--cuslice-split=1GiB+rest")
        self.assertEqual(job.held()[1], [1 << 30])

    def test_wrong_values_fail_the_submission(self):
        script = CLUSTER.write("ran.sh", "#!/bin/sh\necho ran\n")
        script.chmod(0o755)
        wrong = {"limit": ["", "4", "4x", "-1GiB", "4 GiB", "0GiB", "1.GiB", ".GiB", "1.1234567891GiB", "0=4GiB", "4GiB,",
                           "4iB", "17000000TiB", "99999999999999999999999KiB", "4kbb", "4GiBx", "4GiB+context"],
                 "fraction": ["", "0", "1.1", "101%", "-0.1", "0.5x", "4GiB", "1.", ".", "%", "0.0000000001", "1.0000000001",
                              "nan"],
                 "split": ["", "0", "65", "1GiB+", "+rest", "rest+rest", "0.5+0.5", "32MiB+rest", "0=2", "2x",
                           "1GiB@1+2GiB@0", "9999999999"]}
        for option, values in wrong.items():
            for value in values:
                word = f"--cuslice-{option}={value}"
                lines = self.refused("srun", "-Q", word, script)
                self.assertEqual(len(lines), 1, (word, lines))
                self.assertIn(f"cuslice: --cuslice-{option}: {value}: ", lines[0])
        for submit in (["sbatch", "--cuslice-limit=4", script], ["salloc", "--cuslice-limit=4", script]):
            self.assertIn("4: 4 bytes? did you mean 4GiB", self.refused(*submit)[0])
        # As docs/schedulers/slurm.md shows it.
        self.assertEqual(CLUSTER.call("srun", "--cuslice-limit=4", script).stderr,
                         "srun: error: cuslice: --cuslice-limit: 4: 4 bytes? did you mean 4GiB\n"
                         "srun: error: Invalid --cuslice-limit argument: 4\n")
        both = self.refused("srun", "-Q", "--cuslice-limit=1GiB", "--cuslice-fraction=0.5", script)
        self.assertIn("answers the same question", both[0])
        right = {"limit": ["4GiB", "4Gi", "4g", "4gb", ".5GiB", "1.123456789TiB", "16777215TiB", "1024K"],
                 "fraction": ["1", "1.0", "100%", ".4", "0.000000001", "12.5%"],
                 "split": ["1", "64", "1GiB+2GiB", "1GiB+rest", "64MiB"]}
        for option, values in right.items():
            for value in values:
                found, _ = self.variables(f"--cuslice-{option}={value}")
                self.assertIn("CUSLICE_" + option.upper(), found)

    def test_options_in_a_script_and_in_its_steps(self):
        script = CLUSTER.write("script.sh", "#!/bin/sh\n#SBATCH --cuslice-fraction=0.5\nenv\nexec srun -Q env\n")
        log = CLUSTER.folder / "script.log"
        done = CLUSTER.call("sbatch", "--wait", "-o", log, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall("^CUSLICE_FRACTION=(.*)$", log.read_text(), re.M), ["0.500000000"] * 2)
        jobs = set(re.findall("^(?:CUSLICE_JOB=slurm-|SLURM_JOB_ID=)(.*)$", log.read_text(), re.M))
        self.assertEqual(len(jobs), 1)

    def test_the_document_installs_the_plugin_that_is_built(self):
        text = (SOURCE / "docs/schedulers/slurm.md").read_text()
        target = re.search(r"^scripts/build.sh release (\w+)$", text, re.M)[1]
        self.assertIn(f"add_library({target} MODULE", (SOURCE / "integrations/slurm/CMakeLists.txt").read_text())
        built = re.search(r"^install -D build/release/(\S+) /opt/cuslice/(\S+)$", text, re.M)
        self.assertEqual(built[1], PLUGIN.relative_to(BUILD).as_posix())
        self.assertEqual(built[1], built[2])

    def test_a_task_that_can_not_be_limited_is_not_started(self):
        run_it = ["sh", "-c", "echo ran"]
        for arguments, options, line in (
                ("", ["--gres=shard:1"], "the job has 1 shards here, and plugstack.conf doesn't say how many a GPU has"),
                ("shards_per_gpu=2", ["--gres=shard:3"], "the job has 3 shards of 1 GPU(s) here, and shards_per_gpu=2"),
                ("shards_per_gpu=4", ["--gres=shard:1", "--cuslice-limit=1GiB"], "with shards it needs gpu_memory="),
                ("library=/nowhere/libcuslice.so", ["--cuslice-limit=1GiB"], "/nowhere/libcuslice.so: No such file")):
            CLUSTER.plugin(arguments)
            self.assertIn(line, "\n".join(self.refused("srun", *options, *run_it)))
        for arguments in ("shard_per_gpu=4", "report=", "report=mail", "shards_per_gpu=", "shards_per_gpu=4x", "shards_per_gpu=0", "library=x.so",
                          "library=/a:b", "gpu_memory=16"):
            CLUSTER.plugin(arguments)
            self.assertIn(f"plugstack.conf: {arguments}: ", self.refused("srun", *run_it)[0])


if __name__ == "__main__":
    if INSIDE not in os.environ:
        sys.exit(outside())
    # Settings of this process are not for the jobs.
    CLUSTER = Cluster(pathlib.Path(os.environ.pop(INSIDE)), pairs=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
