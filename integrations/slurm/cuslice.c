// SPDX-License-Identifier: Apache-2.0
/// A SPANK plugin: puts the tasks of a Slurm job into one slice of each GPU, on each node.
///
/// The slice is what gres/shard gave the job, or what --cuslice-limit, --cuslice-fraction or --cuslice-split ask for;
/// with both it is the smaller one. A job with neither is left as it is. docs/schedulers/slurm.md describes options and
/// arguments.
///
/// srun, sbatch and salloc check the options, slurmstepd sets the variables, as the user, between fork and exec of each
/// task. All of it runs on the one thread of these processes that calls plugins; nothing here is thread-safe, and needs
/// not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "untrusted.h"
#include "values.h"

SPANK_PLUGIN(cuslice, 1)

enum {
    kText = 256,       // bytes of an option's value
    kPath = 4096,      // bytes of a path
    kList = 16 * 1024  // bytes of LD_PRELOAD
};

// Options as they were given; an empty one was not.
static char limit_text[kText], fraction_text[kText], split_text[kText];
// Arguments in plugstack.conf. 0: not given.
static uint64_t shards_per_gpu, gpu_memory;
static bool report_to_user;
static char library[kPath];

// ---- options --------------------------------------------------------------------------------------------------------

enum { kLimit = 1, kFraction, kSplit };

static int refuse(const char* option, const char* value, const char* why) {
    char shown[4 * kText], reason[4 * sizeof((struct cuslice_value*)0)->why];
    slurm_error("cuslice: --cuslice-%s: %s: %s", option, printable(value, shown, sizeof shown),
                printable(why, reason, sizeof reason));
    return -1;
}

// Called by srun, sbatch and salloc with what their user wrote, and by slurmstepd with what they have checked.
static int take_option(int which, const char* value, int remote) {
    (void)remote;
    const char* const name = which == kLimit ? "limit" : which == kFraction ? "fraction" : "split";
    char* const text = which == kLimit ? limit_text : which == kFraction ? fraction_text : split_text;
    if (!value)
        value = "";
    if (strlen(value) >= kText)
        return refuse(name, value, "at most 255 bytes");
    struct cuslice_value read;
    const bool good = which == kLimit      ? cuslice_read_size(value, &read)
                      : which == kFraction ? cuslice_read_fraction(value, &read)
                                           : cuslice_read_split(value, &read);
    if (!good)
        return refuse(name, value, read.why);
    snprintf(text, kText, "%s", value);
    if (*limit_text && *fraction_text)
        return refuse(name, value,
                      which == kLimit
                          ? "--cuslice-fraction answers the same question; a job's options hold in its steps"
                          : "--cuslice-limit answers the same question; a job's options hold in its steps");
    return 0;
}

// Registered one by one: sbatch and salloc don't look at a table that is called spank_options.
static struct spank_option options[] = {
    {"cuslice-limit", "SIZE", "most memory of each GPU for the job on a node: 4GiB", 1, kLimit, take_option},
    {"cuslice-fraction", "F", "the same as a part of each GPU: 0.25 or 25%", 1, kFraction, take_option},
    {"cuslice-split", "PARTS", "show each GPU as several: 4, or 1GiB+rest", 1, kSplit, take_option}};

// ---- arguments ------------------------------------------------------------------------------------------------------

// The library lies beside the folder that this file is in, unless library= says where.
static void find_library(void) {
    Dl_info self;
    if (*library || !dladdr((void*)options, &self) || !self.dli_fname)
        return;
    char path[kPath];
    snprintf(path, sizeof path, "%s", self.dli_fname);
    for (int up = 0; up < 2; up++) {
        char* const slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    snprintf(library, sizeof library, "%.4000s/libcuslice.so", path);
}

static int wrong_argument(const char* argument, const char* why) {
    slurm_error("cuslice: plugstack.conf: %s: %s", argument, why);
    return -1;
}

/// Reads the arguments and makes the options known. A wrong one is an error of srun, sbatch, salloc and of each step
/// where plugstack.conf says `required`.
int slurm_spank_init(spank_t spank, int count, char* arguments[]) {
    const spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
        return 0;
    for (int i = 0; i < count; i++) {
        const char* const argument = arguments[i];
        const char* const value = strchr(argument, '=') ? strchr(argument, '=') + 1 : "";
        struct cuslice_value read;
        if (!strncmp(argument, "library=", 8)) {
            // The loader splits its list at separators, expands dollar signs, and searches its folders for a name
            // without a slash.
            if (*value != '/' || strpbrk(value, ": \t$") || strlen(value) >= kPath)
                return wrong_argument(argument, "an absolute path is needed, without spaces, colons and dollar signs");
            snprintf(library, sizeof library, "%s", value);
        } else if (!strncmp(argument, "shards_per_gpu=", 15)) {
            char* end = NULL;
            shards_per_gpu = (*value >= '0' && *value <= '9') ? strtoul(value, &end, 10) : 0;
            if (!shards_per_gpu || *end || shards_per_gpu > 100000)
                return wrong_argument(argument, "a number from 1 is needed, the shards of one GPU in gres.conf");
        } else if (!strncmp(argument, "gpu_memory=", 11)) {
            if (!cuslice_read_size(value, &read))
                return wrong_argument(argument, read.why);
            gpu_memory = read.number;
        } else if (!strncmp(argument, "report=", 7)) {
            report_to_user = !strcmp(value, "stderr");
            if (!report_to_user && strcmp(value, "log") != 0)
                return wrong_argument(argument, "log is for slurmd's log alone, stderr for the job's stderr too");
        } else {
            return wrong_argument(argument,
                                  "no such argument; there are library=, shards_per_gpu=, gpu_memory= and report=");
        }
    }
    find_library();
    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (spank_option_register(spank, &options[i]) == ESPANK_SUCCESS)
            continue;
        slurm_error("cuslice: Slurm doesn't take the option --%s", options[i].name);
        return -1;
    }
    return 0;
}

// ---- the task's environment -----------------------------------------------------------------------------------------

static bool get(spank_t spank, const char* name, char* value, int size) {
    return spank_getenv(spank, name, value, size) == ESPANK_SUCCESS;
}

// A task without one of its variables would have more than its slice.
static bool refuse_task(const char* variable, const char* what) {
    slurm_error("cuslice: %s can't be %s; the task is not started", variable, what);
    return false;
}

// `*there`: there is such a variable. False, with a line, where Slurm doesn't say.
static bool look_up(spank_t spank, const char* name, char* value, int size, bool* there) {
    const spank_err_t found = spank_getenv(spank, name, value, size);
    *there = found == ESPANK_SUCCESS;
    return *there || found == ESPANK_ENV_NOEXIST || refuse_task(name, "read");
}

static bool set(spank_t spank, const char* name, const char* value) {
    return spank_setenv(spank, name, value, 1) == ESPANK_SUCCESS || refuse_task(name, "set");
}

static bool unset(spank_t spank, const char* name) {
    return spank_unsetenv(spank, name) == ESPANK_SUCCESS || refuse_task(name, "removed");
}

// `path` in front of `list`, in which it isn't twice. False if there is no room for it.
static bool put_in_front(char* list, size_t size, const char* path) {
    char result[kList], old[kList], *more = old;
    snprintf(old, sizeof old, "%s", list);
    size_t used = (size_t)snprintf(result, sizeof result, "%s", path);
    for (char* entry; used < sizeof result && (entry = strsep(&more, ": "));)
        if (*entry && strcmp(entry, path) != 0)
            used += (size_t)snprintf(result + used, sizeof result - used, ":%s", entry);
    return used < sizeof result && (size_t)snprintf(list, size, "%s", result) < size;
}

// Reads the job's share of each GPU, in parts of cuslice_whole, 0 where it has no shards. Slurm sets the variable for
// each step, and takes it out where the step has none. Of several GPUs Slurm doesn't say how many shards each one gave:
// then the share is the least that any of them can have given. False, with a line, where the share can't be told.
static bool read_shards(spank_t spank, uint64_t* parts) {
    char text[32], gpus_text[32], shown[128];
    bool has_shards, has_gpus;
    *parts = 0;
    if (!look_up(spank, "SLURM_SHARDS_ON_NODE", text, sizeof text, &has_shards))
        return false;
    if (!has_shards)
        return true;
    const uint64_t shards = strtoul(text, NULL, 10);
    if (!shards_per_gpu || !shards) {
        slurm_error(
            "cuslice: the job has %s shards here, and plugstack.conf doesn't say how many a GPU has: "
            "shards_per_gpu=; the task is not started",
            printable(text, shown, sizeof shown));
        return false;
    }
    if (!look_up(spank, "SLURM_GPUS_ON_NODE", gpus_text, sizeof gpus_text, &has_gpus))
        return false;
    uint64_t gpus = has_gpus ? strtoul(gpus_text, NULL, 10) : 1;
    if (!gpus)
        gpus = 1;
    if (shards > gpus * shards_per_gpu) {
        slurm_error(
            "cuslice: the job has %s shards of %llu GPU(s) here, and shards_per_gpu=%llu in plugstack.conf: one of the "
            "two is wrong; the task is not started",
            printable(text, shown, sizeof shown), (unsigned long long)gpus, (unsigned long long)shards_per_gpu);
        return false;
    }
    const uint64_t elsewhere = (gpus - 1) * shards_per_gpu;
    const uint64_t here = shards > elsewhere ? shards - elsewhere : 1;
    *parts = here * cuslice_whole / shards_per_gpu;
    return true;
}

// The smaller one of shards and options as what CUSLICE_LIMIT or CUSLICE_FRACTION takes. `first`: the node's first
// task, which says what is not as it was asked for.
static bool choose_amount(uint64_t shard, bool first, char* limit, char* fraction) {
    struct cuslice_value read;
    uint64_t parts = shard;
    if (*limit_text && shard && !gpu_memory) {
        slurm_error(
            "cuslice: --cuslice-limit=%s: with shards it needs gpu_memory= in plugstack.conf; "
            "--cuslice-fraction doesn't; the task is not started",
            limit_text);
        return false;
    }
    if (*limit_text) {
        __extension__ typedef unsigned __int128 Wide;
        cuslice_read_size(limit_text, &read);  // take_option() has
        if (!shard || read.number <= (Wide)gpu_memory * shard / cuslice_whole) {
            snprintf(limit, kText, "%s", limit_text);
            return true;
        }
        if (first)
            slurm_spank_log("cuslice: --cuslice-limit=%s is more than the job's shards, which hold", limit_text);
    } else if (*fraction_text) {
        cuslice_read_fraction(fraction_text, &read);
        parts = read.number;
        if (shard && parts > shard) {
            if (first)
                slurm_spank_log("cuslice: --cuslice-fraction=%s is more than the job's shards, which hold",
                                fraction_text);
            parts = shard;
        }
    }
    if (parts == cuslice_whole)
        snprintf(fraction, kText, "1");
    else if (parts)
        snprintf(fraction, kText, "0.%09llu", (unsigned long long)parts);
    return true;
}

static bool set_or_unset(spank_t spank, const char* name, const char* value) {
    return *value ? set(spank, name, value) : unset(spank, name);
}

// A job that was submitted inside another job has that one's variables in its environment, where it should have none.
static bool forget_other_job(spank_t spank, const char* job) {
    static const char* const kOurs[] = {"CUSLICE_JOB", "CUSLICE_LIMIT", "CUSLICE_FRACTION", "CUSLICE_SPLIT"};
    char other[kList];
    bool there;
    if (!look_up(spank, "CUSLICE_JOB", other, sizeof other, &there))
        return false;
    if (!there || strncmp(other, "slurm-", 6) != 0 || !strcmp(other, job))
        return true;
    for (unsigned i = 0; i < sizeof kOurs / sizeof kOurs[0]; i++)
        if (!unset(spank, kOurs[i]))
            return false;
    return true;
}

// Where GPUs are split, CUDA_VISIBLE_DEVICES would choose among parts: Slurm's choice among GPUs is told otherwise.
static bool move_visible(spank_t spank) {
    char visible[kList];
    bool there;
    if (!look_up(spank, "CUDA_VISIBLE_DEVICES", visible, sizeof visible, &there))
        return false;
    return !there || (set(spank, "CUSLICE_GPUS", visible) && unset(spank, "CUDA_VISIBLE_DEVICES"));
}

static bool is_there(const char* path) {
    if (access(path, R_OK) == 0)
        return true;
    slurm_error("cuslice: %s: %s; the task is not started", path, strerror(errno));
    return false;
}

static bool preload(spank_t spank) {
    char list[kList] = "", runtime[kPath + 32];
    if (!is_there(library))
        return false;
    const spank_err_t found = spank_getenv(spank, "LD_PRELOAD", list, sizeof list);
    bool done = found == ESPANK_SUCCESS || found == ESPANK_ENV_NOEXIST;
    if (done && *split_text) {  // it shows parts to programs on the CUDA runtime
        const char* const slash = strrchr(library, '/');
        snprintf(runtime, sizeof runtime, "%.*s/libcuslice-runtime.so", (int)(slash - library), library);
        if (!is_there(runtime))
            return false;
        done = put_in_front(list, sizeof list, runtime);
    }
    done = done && put_in_front(list, sizeof list, library) &&
           spank_setenv(spank, "LD_PRELOAD", list, 1) == ESPANK_SUCCESS;
    if (!done)
        slurm_error("cuslice: LD_PRELOAD can't be set: it is too long; the task is not started");
    return done;
}

/// Puts the task into the job's slice. -1 where that can't be done: slurmstepd doesn't start it, where plugstack.conf
/// says `required`.
int slurm_spank_task_init(spank_t spank, int count, char* arguments[]) {
    (void)count, (void)arguments;
    char job[32], limit[kText] = "", fraction[kText] = "";
    uint32_t id = 0;
    int task = 0;
    uint64_t shard = 0;
    if (spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS) {
        slurm_error("cuslice: Slurm doesn't say which job and task this is; it is not started");
        return -1;
    }
    snprintf(job, sizeof job, "slurm-%u", id);
    if (!forget_other_job(spank, job) || !read_shards(spank, &shard))
        return -1;
    if (!shard && !*limit_text && !*fraction_text && !*split_text)
        return 0;
    if (!choose_amount(shard, task == 0, limit, fraction) || !preload(spank))
        return -1;
    if (!set(spank, "CUSLICE_JOB", job) || !set_or_unset(spank, "CUSLICE_LIMIT", limit) ||
        !set_or_unset(spank, "CUSLICE_FRACTION", fraction))
        return -1;
    if (*split_text && (!set(spank, "CUSLICE_SPLIT", split_text) || !move_visible(spank)))
        return -1;
    // A launcher around srun may have set these: its settings override variables, and its GPUs are another node's.
    return unset(spank, "CUSLICE_SETTINGS") && unset(spank, "CUSLICE_VISIBLE_DEVICES") ? 0 : -1;
}

// ---- what a job held ------------------------------------------------------------------------------------------------

enum { kLookMost = 5000, kFew = 8 };  // milliseconds that a look at the ledgers may take; variables that it needs

// bin/cuslice of the installation whose lib/cuslice the library is in.
static bool find_launcher(char* path, size_t size) {
    snprintf(path, size, "%.4000s", library);
    for (int up = 0; up < 3; up++) {
        char* const slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    const size_t used = strlen(path);
    return (size_t)snprintf(path + used, size - used, "/bin/cuslice") < size - used && access(path, X_OK) == 0;
}

// Adds the job's variables that say where its ledgers are.
static void add_variables(spank_t spank, char (*texts)[kPath + 32], char** environment) {
    static const char* const kNames[] = {"CUSLICE_DIR", "CUSLICE_FAKE", "CUSLICE_FAKE_DIR", "CUSLICE_FAKE_MACHINE"};
    unsigned count = 0;
    char value[kPath];
    for (unsigned i = 0; i < sizeof kNames / sizeof kNames[0]; i++) {
        if (!get(spank, kNames[i], value, sizeof value))
            continue;
        snprintf(texts[count], sizeof texts[count], "%s=%s", kNames[i], value);
        environment[count] = texts[count];
        count++;
    }
    environment[count] = NULL;
}

// Starts the program as the job's user, who may see the job and needs no trust; -1 if it can't be. `*answer`: where
// what it prints is read.
static pid_t start_as(uint32_t user, uint32_t group, char* const arguments[], char* const environment[], int* answer) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        const int none = open("/dev/null", O_RDWR);
        if (geteuid() == 0 && user != 0 && (setgroups(0, NULL) != 0 || setgid(group) != 0 || setuid(user) != 0))
            _exit(126);
        const bool ready = dup2(none, 0) == 0 && dup2(ends[1], 1) == 1 && dup2(none, 2) == 2;
        // slurmstepd's are root's, and the user could get them out of a program of theirs.
        close_from(3);
        if (ready)
            execve(arguments[0], arguments, environment);
        _exit(127);
    }
    close(ends[1]);
    *answer = ends[0];
    if (child < 0)
        close(ends[0]);
    return child;
}

// All that a program prints, as a text; it is killed if that takes too long.
static void read_all(pid_t child, int answer, char* text, size_t size) {
    size_t used = 0;
    int left = kLookMost;
    for (ssize_t count = 1; count > 0 && left > 0 && used + 1 < size;) {
        struct timespec before, now;
        clock_gettime(CLOCK_MONOTONIC, &before);
        struct pollfd ready = {answer, POLLIN, 0};
        if (poll(&ready, 1, left) <= 0 && errno != EINTR)
            break;
        count = ready.revents ? read(answer, text + used, size - used - 1) : 1;
        if (ready.revents && count > 0)
            used += (size_t)count;
        clock_gettime(CLOCK_MONOTONIC, &now);
        left -= (int)((now.tv_sec - before.tv_sec) * 1000 + (now.tv_nsec - before.tv_nsec) / 1000000);
    }
    text[used] = '\0';
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(answer);
}

static void report_peaks(spank_t spank, uint32_t job) {
    char launcher[kPath + 32], name[32], text[4096], variables[kFew][kPath + 32];
    char* environment[kFew + 1];
    uint32_t user = 0, group = 0;
    if (!find_launcher(launcher, sizeof launcher) || spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &group) != ESPANK_SUCCESS)
        return;
    snprintf(name, sizeof name, "slurm-%u", job);
    add_variables(spank, variables, environment);
    char* const arguments[] = {launcher, "ps", "--job", name, NULL};
    int answer = -1;
    const pid_t child = start_as(user, group, arguments, environment, &answer);
    if (child < 0)
        return;
    read_all(child, answer, text, sizeof text);
    char* more = text;
    for (char* line; (line = strsep(&more, "\n")) && more;) {
        char shown[1024];
        printable(line, shown, sizeof shown);
        if (report_to_user)
            slurm_spank_log("cuslice: %s", shown);
        else
            slurm_info("cuslice: %s", shown);
    }
}

/// Once the step's last task on this node has ended: says what the job has held at most of each GPU here, since it
/// began, in slurmd's log and, with report=stderr, in the step's stderr. A job without a slice is not asked for.
int slurm_spank_task_exit(spank_t spank, int count, char* arguments[]) {
    (void)count, (void)arguments;
    static uint32_t ended;
    uint32_t tasks = 0, job = 0;
    char shards[32];
    ended++;
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || ended != tasks)
        return 0;
    const bool has_slice =
        *limit_text || *fraction_text || *split_text || get(spank, "SLURM_SHARDS_ON_NODE", shards, sizeof shards);
    if (has_slice && spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS)
        report_peaks(spank, job);
    return 0;
}
