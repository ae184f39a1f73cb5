// SPDX-License-Identifier: Apache-2.0
// The plugin for Slurm without Slurm: what it writes into slurmd's log, and what the program that it starts inherits.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.h"

extern "C" {
#include "lab/slurm/stub/slurm/spank.h"

int slurm_spank_init(spank_t spank, int count, char* arguments[]);
int slurm_spank_task_exit(spank_t spank, int count, char* arguments[]);
}

namespace {

std::vector<std::string> logged;
std::vector<spank_option> registered;

void keep(const char* format, va_list values) {
    char line[4096];
    vsnprintf(line, sizeof line, format, values);
    logged.emplace_back(line);
}

struct Folder {
    Folder() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    /// An installation whose launcher is a script.
    std::string with_launcher(const std::string& script) const {
        for (const char* part : {"/bin", "/lib", "/lib/cuslice"})
            std::filesystem::create_directory(path + part);
        std::ofstream(path + "/bin/cuslice") << "#!/bin/sh\n" << script;
        chmod((path + "/bin/cuslice").c_str(), 0755);
        return "library=" + path + "/lib/cuslice/libcuslice.so";
    }
    std::string path;
};

/// The last task of a step with a slice ends.
void end_step(const std::string& library) {
    logged.clear();
    registered.clear();
    std::string argument = library;
    char* arguments[] = {argument.data()};
    REQUIRE(slurm_spank_init(nullptr, 1, arguments) == 0);
    REQUIRE(registered.size() == 3);
    REQUIRE(registered[0].cb(registered[0].val, "4GiB", 1) == 0);
    slurm_spank_task_exit(nullptr, 0, nullptr);
}

}  // namespace

extern "C" {
spank_context_t spank_context() { return S_CTX_REMOTE; }
spank_err_t spank_option_register(spank_t, spank_option* option) {
    registered.push_back(*option);
    return ESPANK_SUCCESS;
}
unsigned tasks_ended = 0;
spank_err_t spank_get_item(spank_t, spank_item_t item, ...) {
    va_list values;
    va_start(values, item);
    auto* const number = va_arg(values, uint32_t*);
    *number = item == S_JOB_UID                ? getuid()
              : item == S_JOB_GID              ? getgid()
              : item == S_JOB_LOCAL_TASK_COUNT ? ++tasks_ended
                                               : 42;
    va_end(values);
    return ESPANK_SUCCESS;
}
spank_err_t spank_getenv(spank_t, const char*, char*, int) { return ESPANK_ENV_NOEXIST; }
spank_err_t spank_setenv(spank_t, const char*, const char*, int) { return ESPANK_SUCCESS; }
spank_err_t spank_unsetenv(spank_t, const char*) { return ESPANK_SUCCESS; }
void slurm_info(const char* format, ...) {
    va_list values;
    va_start(values, format);
    keep(format, values);
    va_end(values);
}
void slurm_error(const char* format, ...) {
    va_list values;
    va_start(values, format);
    keep(format, values);
    va_end(values);
}
void slurm_spank_log(const char* format, ...) {
    va_list values;
    va_start(values, format);
    keep(format, values);
    va_end(values);
}
}

TEST_CASE("slurm plugin: a user's text is one printable line of the log each") {
    const Folder folder;
    end_step(folder.with_launcher(R"(printf 'slurm-42 held 1 MiB\n\033[2Jgone\a\rslurmd: error: forged\n'
printf 'back\\slash \342\200\256right \200\377 %%s%%n%%d\n')"));
    REQUIRE(logged.size() == 3);
    CHECK(logged[0] == "cuslice: slurm-42 held 1 MiB");
    CHECK(logged[1] == R"(cuslice: \x1b[2Jgone\x07\x0dslurmd: error: forged)");
    CHECK(logged[2] == R"(cuslice: back\x5cslash \xe2\x80\xaeright \x80\xff %s%n%d)");
}

TEST_CASE("slurm plugin: an option's value is shown as one printable line") {
    const Folder folder;
    end_step(folder.with_launcher(""));
    logged.clear();
    for (const spank_option& option : registered)
        CHECK(option.cb(option.val, "1\nslurmd: error: forged\x1b[2J", 1) == -1);
    REQUIRE(logged.size() == 3);
    for (const std::string& line : logged) {
        CHECK(line.find('\n') == std::string::npos);
        CHECK(line.find(R"(1\x0aslurmd: error: forged\x1b[2J: )") != std::string::npos);
    }
}

TEST_CASE("slurm plugin: values are the library's own, but for a context on top of a job's slice") {
    const Folder folder;
    end_step(folder.with_launcher(""));
    const auto take = [](size_t option, const char* value) {
        logged.clear();
        return registered[option].cb(registered[option].val, value, 1) == 0 ? "taken" : logged.at(0);
    };
    enum { kLimit, kFraction, kSplit };
    CHECK(take(kLimit, "1.5GiB") == "taken");
    for (const char* split : {"1", "4", "64", "1GiB+rest", "64MiB"})
        CHECK(take(kSplit, split) == "taken");
    for (const char* split : {"1GiB@1+2GiB@0", "1GiB:-1+rest", "1GiB#2+2GiB#5"})
        CHECK(take(kSplit, split) == std::string("cuslice: --cuslice-split: ") + split +
                                         ": places, numbers and priorities are of one GPU's partitions: write "
                                         "CUSLICE_SPLIT for them");
    CHECK(take(kLimit, "4") == "cuslice: --cuslice-limit: 4: 4 bytes? did you mean 4GiB");
    CHECK(take(kLimit, "0MiB") == "cuslice: --cuslice-limit: 0MiB: a limit of 0 leaves no memory: more than 0");
    for (const char* wrong : {"0", "1.1", "101%", "-0.1", "0.5x", "4GiB", "1.", ".", "0.0000000001", "1.0000000001"}) {
        const std::string line = take(kFraction, wrong);
        CHECK(line.find("cuslice: --cuslice-fraction: " + std::string(wrong) + ": ") == 0);
        CHECK(line.find("answers the same question") == line.npos);
    }
    for (const char* wrong : {"0", "65", "1GiB+", "+rest", "rest+rest", "0.5+0.5", "0=2", "2x", "9999999999"})
        CHECK(take(kSplit, wrong) != "taken");
    CHECK(take(kSplit, "1GiB+63MiB") ==
          "cuslice: --cuslice-split: 1GiB+63MiB: 63MiB is too little for a GPU: a partition has at least 64MiB");
    const std::string on_top = ": a job's slice counts its contexts: leave out +context";
    CHECK(take(kLimit, "4GiB+context") == "cuslice: --cuslice-limit: 4GiB+context" + on_top);
    CHECK(take(kSplit, "1GiB+rest+context") == "cuslice: --cuslice-split: 1GiB+rest+context" + on_top);
}

TEST_CASE("slurm plugin: what it starts inherits nothing of slurmstepd's, however many files there may be") {
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit many = before;
    many.rlim_cur = before.rlim_max;
    setrlimit(RLIMIT_NOFILE, &many);
    std::vector<int> files;
    for (const int number : {40, 255, 1000})
        files.push_back(fcntl(0, F_DUPFD, number));
    const Folder folder;
    end_step(folder.with_launcher("echo /proc/self/fd/* | sed s,/proc/self/fd/,,g\n"));
    for (const int file : files)
        close(file);
    setrlimit(RLIMIT_NOFILE, &before);
    REQUIRE(logged.size() == 1);
    CHECK(logged[0].find("cuslice: 0 1 2") == 0);
    // The shell's own for its script is 10 or above, or 3: dash has 10.
    for (const char* const number : {" 40", " 255", " 1000"})
        CHECK(logged[0].find(number) == std::string::npos);
}
