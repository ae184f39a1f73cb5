// SPDX-License-Identifier: Apache-2.0
// The watcher: what it says of a program is what the books say, and it ends as the program does.

#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/catch.h"
#include "tests/fake/child.h"

namespace {

constexpr const char* program_mark = "CUSLICE_WATCHED_PROGRAM";

/// Runs a shell command; its standard output, and its exit status in `status`.
std::string output_of(const std::string& command, int& status) {
    std::string text;
    std::FILE* pipe = popen(command.c_str(), "r");
    char part[4096];
    for (size_t size = 0; (size = std::fread(part, 1, sizeof part, pipe)) > 0;)
        text.append(part, size);
    const int ended = pclose(pipe);
    status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    return text;
}

/// Three kernels on the current GPU, and a copy of 1 MiB to it.
bool compute(CUdeviceptr memory) {
    constexpr const char* kStep = ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry step() { ret; }";
    constexpr size_t kBytes = 1 << 20;
    CUmodule module = nullptr;
    CUfunction step = nullptr;
    bool good =
        cuModuleLoadData(&module, kStep) == CUDA_SUCCESS && cuModuleGetFunction(&step, module, "step") == CUDA_SUCCESS;
    for (int i = 0; i < 3; i++)
        good = good && cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS;
    return good && cuMemcpyHtoD(memory, std::string(kBytes, 'x').data(), kBytes) == CUDA_SUCCESS;
}

/// This program again, as the one that is watched: takes 100 MiB, gives back 60, and computes where that
/// takes time.
const struct Watched {
    Watched() {
        if (std::getenv(program_mark) == nullptr)
            return;
        CUcontext context = nullptr;
        CUdeviceptr a = 0, b = 0;
        const bool good = cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                          cuCtxSetCurrent(context) == CUDA_SUCCESS && cuMemAlloc(&a, 40 << 20) == CUDA_SUCCESS &&
                          cuMemAlloc(&b, 60 << 20) == CUDA_SUCCESS && cuMemFree(b) == CUDA_SUCCESS &&
                          (std::getenv("CUSLICE_FAKE_COST") == nullptr || compute(a));
        if (std::getenv("CUSLICE_WATCHED_KILLS_ITSELF") != nullptr)
            abort();
        _exit(good ? 42 : 1);
    }
} watched;

std::string self() {
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    return {path, static_cast<size_t>(size)};
}

/// The command line that watches this program.
std::string watching(const fake_test::Folder& folder, const std::string& before, const std::string& program) {
    return "CUSLICE_FAKE=laptop-2g CUSLICE_FAKE_DIR=" + folder.path() + " " + program_mark + "=1 " + before +
           " " WATCH " --json -- " + program + " 2>/dev/null";
}

/// Variables with which work takes time, on the machine's own clock.
constexpr const char* kTimed = "CUSLICE_FAKE_COST=step=10ms CUSLICE_FAKE_CLOCK=virtual";

nlohmann::json rows_of(const std::string& text) { return nlohmann::json::parse(text, nullptr, false); }

}  // namespace

TEST_CASE("peak, rest and context of the program are told, with its exit status") {
    const fake_test::Folder folder;
    int status = 0;
    const std::string text = output_of(watching(folder, "", self()), status);
    CHECK(status == 42);
    CHECK(text.find("\"peak\": " + std::to_string(400 << 20)) != std::string::npos);
    CHECK(text.find("\"used\": " + std::to_string(340 << 20)) != std::string::npos);
    CHECK(text.find("\"context\": " + std::to_string(300 << 20)) != std::string::npos);
    CHECK(text.find("\"live\": false") != std::string::npos);
}

TEST_CASE("a grandchild is told too, and another's process is not") {
    const fake_test::Folder folder;
    int status = 0;
    output_of(watching(folder, "", self()), status);  // leaves an ended slot behind
    const std::string text = output_of(watching(folder, "", "sh -c 'sh -c " + self() + "; exit 7'"), status);
    CHECK(status == 7);
    CHECK(text.find("\"peak\"") != std::string::npos);
    CHECK(text.find("\"peak\"") == text.rfind("\"peak\""));
}

TEST_CASE("a program that dies is told with what it held") {
    const fake_test::Folder folder;
    int status = 0;
    const std::string text = output_of(watching(folder, "CUSLICE_WATCHED_KILLS_ITSELF=1", self()), status);
    CHECK(status == 128 + 6);
    CHECK(text.find("\"used\": " + std::to_string(340 << 20)) != std::string::npos);
}

TEST_CASE("where work takes time, that of each engine is told, and it is not elsewhere") {
    const fake_test::Folder folder;
    int status = 0;
    const auto timed = rows_of(output_of(watching(folder, kTimed, self()), status));
    CHECK(status == 42);
    REQUIRE(timed.size() == 1);
    CHECK(timed[0]["compute_ms"] == 30.0);
    CHECK(timed[0]["copy_in_ms"] > 0.0);
    CHECK(timed[0]["copy_out_ms"] == 0.0);
    const std::string lines = output_of("CUSLICE_FAKE_DIR=" + folder.path() + " " WATCH " --all", status);
    CHECK(lines.find(", compute 30.00 ms, copies in ") != std::string::npos);

    const fake_test::Folder other;
    const auto untimed = rows_of(output_of(watching(other, "", self()), status));
    REQUIRE(untimed.size() == 1);
    CHECK_FALSE(untimed[0].contains("compute_ms"));
}

TEST_CASE("--turns has a line for each time that a process had an engine") {
    const fake_test::Folder folder;
    int status = 0;
    const auto rows = rows_of(output_of(watching(folder, kTimed, self()), status));
    REQUIRE(rows.size() == 1);
    std::istringstream csv(output_of("CUSLICE_FAKE_DIR=" + folder.path() + " " WATCH " --turns", status));
    CHECK(status == 0);
    std::string line;
    std::getline(csv, line);
    CHECK(line == "gpu,pid,engine,begin,end");
    const std::string process = "0," + rows[0]["pid"].dump() + ",";
    unsigned long long begin = 0, end = 0;
    std::getline(csv, line);
    REQUIRE(line.starts_with(process + "compute,"));
    CHECK(std::sscanf(line.c_str() + process.size(), "compute,%llu,%llu", &begin, &end) == 2);
    CHECK(end - begin == 30'000'000);
    std::getline(csv, line);
    REQUIRE(line.starts_with(process + "copy_in,"));
    // The copy is after the kernels in the stream.
    CHECK(line.starts_with(process + "copy_in," + std::to_string(end) + ","));
    CHECK_FALSE(std::getline(csv, line));
    CHECK(output_of("CUSLICE_FAKE_DIR=/no/such/folder " WATCH " --turns", status) == "gpu,pid,engine,begin,end\n");
}

TEST_CASE("what can't be run is said in the exit status") {
    const fake_test::Folder folder;
    int status = 0;
    output_of(watching(folder, "", "/no/such/program"), status);
    CHECK(status == 127);
    output_of(watching(folder, "", "/"), status);
    CHECK(status == 126);
    output_of(std::string(WATCH) + " 2>/dev/null", status);
    CHECK(status == 64);
}

TEST_CASE("--list shows the living alone, --all also those that have ended") {
    const fake_test::Folder folder;
    int status = 0;
    output_of(watching(folder, "", self()), status);
    CHECK(output_of("CUSLICE_FAKE_DIR=" + folder.path() + " " WATCH " --json --list", status) == "[]\n");
    CHECK(status == 0);
    const std::string all = output_of("CUSLICE_FAKE_DIR=" + folder.path() + " " WATCH " --json --all", status);
    CHECK(all.find("\"live\": false") != std::string::npos);
    CHECK(status == 0);
}

TEST_CASE("what a test may name is told as JSON, and a machine that is none with its reason") {
    int status = 0;
    const auto words = nlohmann::json::parse(output_of(WATCH " --words", status), nullptr, false);
    CHECK(status == 0);
    REQUIRE_FALSE(words.is_discarded());
    const auto& functions = words["functions"];
    for (const char* name : {"cuMemAlloc", "cuMemAlloc_v2", "cuGetProcAddress_v2"})
        CHECK(std::find(functions.begin(), functions.end(), name) != functions.end());
    CHECK(words["results"]["CUDA_ERROR_OUT_OF_MEMORY"] == CUDA_ERROR_OUT_OF_MEMORY);

    const auto gpus = nlohmann::json::parse(output_of(WATCH " --machine 2xt4,1xh200", status), nullptr, false);
    CHECK(status == 0);
    REQUIRE(gpus.size() == 3);
    CHECK(gpus[2]["name"] == "NVIDIA H200");
    CHECK(gpus[0]["uuid"] != gpus[1]["uuid"]);
    CHECK(output_of(WATCH " --machine 1xt5 2>&1", status).starts_with("there is no profile 't5'; the profiles are: "));
    CHECK(status == 78);
}
