// SPDX-License-Identifier: Apache-2.0
// Each call that the plugin for Slurm makes into the C library fails once, in turn, and so does each into Slurm. The
// task is started in its slice, or refused with a line; slurmstepd goes on and has no more processes and files than
// before; and what it starts is the job's user.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/catch.h"

extern "C" {
#include "lab/slurm/stub/slurm/spank.h"

int slurm_spank_init(spank_t spank, int count, char* arguments[]);
int slurm_spank_task_init(spank_t spank, int count, char* arguments[]);
int slurm_spank_task_exit(spank_t spank, int count, char* arguments[]);
bool call_fails(const char* name);
}

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

constexpr unsigned kNobody = 65534;
constexpr int kInherited = 40;  // a descriptor of slurmstepd's that nothing may inherit

/// A run of the plugin, in a process of its own: what the test and that process share.
struct Run {
    unsigned calls = 0, failing = 0;  // made so far; the number of the one that fails, from 1, or 0
    int error = 0;                    // errno of its failure
    char name[32] = {};               // of the call that has failed
    bool reported = false;            // what the job has held
    char answer[64 * 1024] = {};      // faults, and the task's environment or refusal
};

/// A job's options, and the environment that its task begins with.
struct Situation {
    const char* name;
    Words arguments;
    std::map<int, std::string> options;  // by their places
    Variables environment;
    bool has_slice = true;
};

enum { kLimit, kFraction, kSplit };
const Situation kSituations[] = {
    {"a limit", {}, {{kLimit, "4GiB"}}, {}},
    {"a fraction", {}, {{kFraction, "0.25"}}, {{"CUSLICE_LIMIT", "80GiB"}}},
    {"shards", {"shards_per_gpu=4"}, {}, {{"SLURM_SHARDS_ON_NODE", "1"}, {"CUSLICE_SETTINGS", "1"}}},
    {"shards of two GPUs",
     {"shards_per_gpu=4"},
     {},
     {{"SLURM_SHARDS_ON_NODE", "7"}, {"SLURM_GPUS_ON_NODE", "2"}, {"LD_PRELOAD", "/lib/other.so"}}},
    {"shards and a limit",
     {"shards_per_gpu=4", "gpu_memory=80GiB"},
     {{kLimit, "4GiB"}},
     {{"SLURM_SHARDS_ON_NODE", "1"}, {"CUSLICE_FRACTION", "1"}}},
    {"a split", {"report=stderr"}, {{kLimit, "4GiB"}, {kSplit, "2"}}, {{"CUDA_VISIBLE_DEVICES", "1"}}},
    {"a job that was submitted inside another",
     {},
     {},
     {{"CUSLICE_JOB", "slurm-7"}, {"CUSLICE_LIMIT", "1GiB"}, {"CUSLICE_SPLIT", "2"}},
     false},
    {"a job without a slice", {}, {}, {}, false},
};

Run* run;
Variables environment;
std::vector<spank_option> registered;
Words logged;

void note(const char* format, va_list values) {
    char line[4096];
    vsnprintf(line, sizeof line, format, values);
    logged.emplace_back(line);
}

/// An installation whose launcher says who it is, and what it has inherited.
struct Installation {
    Installation() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        path = mkdtemp(name);
        chmod(path.c_str(), 0755);
        std::filesystem::create_directories(path + "/bin");
        std::filesystem::create_directories(path + "/lib/cuslice");
        for (const char* library : {"/libcuslice.so", "/libcuslice-runtime.so"})
            std::ofstream(path + "/lib/cuslice" + library) << "";
        std::ofstream(path + "/bin/cuslice") << "#!/bin/sh\necho held by $(id -u): /proc/self/fd/*\n";
        chmod((path + "/bin/cuslice").c_str(), 0755);
    }
    ~Installation() { std::filesystem::remove_all(path); }
    std::string path;
};

size_t open_files() {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(files), end(files)));
}

std::string shown(const Variables& variables) {
    std::string text;
    for (const auto& [name, value] : variables)
        text.append(name).append("=").append(value).append("\n");
    return text;
}

bool takes_options(const Situation& situation) {
    for (const auto& [place, value] : situation.options)
        if (registered[static_cast<size_t>(place)].cb(registered[static_cast<size_t>(place)].val, value.c_str(), 1) !=
            0)
            return false;
    return true;
}

/// The environment of the task that is started; "refused" and the lines that say so.
std::string start(const Situation& situation, const Installation& installation) {
    Words arguments = situation.arguments;
    arguments.push_back("library=" + installation.path + "/lib/cuslice/libcuslice.so");
    std::vector<char*> words;
    for (std::string& argument : arguments)
        words.push_back(argument.data());
    environment = situation.environment;
    const bool started = slurm_spank_init(nullptr, static_cast<int>(words.size()), words.data()) == 0 &&
                         takes_options(situation) && slurm_spank_task_init(nullptr, 0, nullptr) == 0;
    if (started)
        return shown(environment);
    std::string lines = "refused";
    for (const std::string& line : logged)
        lines.append("\n").append(line);
    return lines;
}

/// The fault of the step's end and of its report; empty: none.
std::string end() {
    logged.clear();
    if (slurm_spank_task_exit(nullptr, 0, nullptr) != 0)
        return "the end of the task failed\n";
    const std::string user = std::to_string(geteuid() == 0 ? kNobody : geteuid());
    for (const std::string& line : logged) {
        if (line.find("held by ") == line.npos)
            continue;
        run->reported = true;
        if (line.find("held by " + user + ": ") == line.npos)
            return "another user: " + line + "\n";
        if (line.find("/fd/" + std::to_string(kInherited)) != line.npos)
            return "inherited: " + line + "\n";
    }
    return "";
}

/// In a process of its own, as the plugin has its state in variables.
void go_through(const Situation& situation, const Installation& installation) {
    alarm(20);  // ends a run that hangs
    dup2(0, kInherited);
    const size_t before = open_files();
    const std::string started = start(situation, installation);
    std::string wrong = end();
    if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD)
        wrong += "a process is left\n";
    if (open_files() != before)
        wrong += "a file is left open\n";
    snprintf(run->answer, sizeof run->answer, "%s%s", wrong.c_str(), started.c_str());
    _exit(0);
}

/// The task's environment or refusal, with this call failing; 0: none does.
std::string outcome(const Situation& situation, const Installation& installation, unsigned failing, int error) {
    *run = {};
    run->failing = failing;
    run->error = error;
    const pid_t child = fork();
    if (child == 0)
        go_through(situation, installation);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? run->answer : "ended by signal " + std::to_string(WTERMSIG(status));
}

/// A refusal that names no reason leaves the user to guess.
bool is_told(const std::string& answer) { return answer.rfind("refused\ncuslice: ", 0) == 0; }

}  // namespace

extern "C" {
bool call_fails(const char* name) {
    if (++run->calls != run->failing)
        return false;
    strncpy(run->name, name, sizeof run->name - 1);
    errno = run->error;
    return true;
}
spank_context_t spank_context() { return S_CTX_REMOTE; }
spank_err_t spank_option_register(spank_t, spank_option* option) {
    if (call_fails("spank_option_register"))
        return ESPANK_ERROR;
    registered.push_back(*option);
    return ESPANK_SUCCESS;
}
spank_err_t spank_get_item(spank_t, spank_item_t item, ...) {
    if (call_fails("spank_get_item"))
        return ESPANK_ERROR;
    va_list values;
    va_start(values, item);
    void* const into = va_arg(values, void*);
    va_end(values);
    const uint32_t number = item == S_JOB_UID || item == S_JOB_GID ? kNobody
                            : item == S_JOB_LOCAL_TASK_COUNT       ? 1
                            : item == S_TASK_ID                    ? 0
                                                                   : 42;
    memcpy(into, &number, sizeof number);
    return ESPANK_SUCCESS;
}
spank_err_t spank_getenv(spank_t, const char* name, char* value, int size) {
    if (call_fails("spank_getenv"))
        return ESPANK_ERROR;
    const auto found = environment.find(name);
    if (found == environment.end())
        return ESPANK_ENV_NOEXIST;
    snprintf(value, static_cast<size_t>(size), "%s", found->second.c_str());
    return ESPANK_SUCCESS;
}
spank_err_t spank_setenv(spank_t, const char* name, const char* value, int) {
    if (call_fails("spank_setenv"))
        return ESPANK_ERROR;
    environment[name] = value;
    return ESPANK_SUCCESS;
}
spank_err_t spank_unsetenv(spank_t, const char* name) {
    if (call_fails("spank_unsetenv"))
        return ESPANK_ERROR;
    environment.erase(name);
    return ESPANK_SUCCESS;
}
void slurm_info(const char* format, ...) {
    va_list values;
    va_start(values, format);
    note(format, values);
    va_end(values);
}
void slurm_error(const char* format, ...) {
    va_list values;
    va_start(values, format);
    note(format, values);
    va_end(values);
}
void slurm_spank_log(const char* format, ...) {
    va_list values;
    va_start(values, format);
    note(format, values);
    va_end(values);
}
}

TEST_CASE("slurm plugin: each call fails once: the task is started in its slice, or refused with a line") {
    void* const shared = mmap(nullptr, sizeof(Run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    run = static_cast<Run*>(shared);
    const Installation installation;
    std::string faults;
    unsigned failed = 0, counted = 0;
    for (const Situation& situation : kSituations) {
        const std::string whole = outcome(situation, installation, 0, 0);
        const unsigned calls = run->calls;
        CAPTURE(situation.name, whole);
        CHECK(whole.rfind("CUSLICE_", 0) == (situation.has_slice ? 0 : std::string::npos));
        CHECK(run->reported == situation.has_slice);
        for (const int error : {EIO, EINTR}) {
            for (unsigned failing = 1; failing <= calls; failing++) {
                const std::string now = outcome(situation, installation, failing, error);
                counted++;
                failed += run->name[0] != '\0';
                if (now != whole && !is_told(now))
                    faults += std::string(situation.name) + ", " + run->name + ", call " + std::to_string(failing) +
                              ": " + now + "\n";
            }
        }
    }
    munmap(shared, sizeof(Run));
    INFO(failed << " of " << counted << " calls failed");
    CHECK(faults == "");
    CHECK(failed * 2 > counted);
}
