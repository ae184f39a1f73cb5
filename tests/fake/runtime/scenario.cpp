// SPDX-License-Identifier: Apache-2.0
#include "tests/fake/runtime/scenario.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <stdexcept>

namespace cuslice::tests {

Machine spied_machine(const std::string& log) {
    return {.library_path = std::string(CUSLICE_TEST_SPY_FOLDER) + ":" + kFakeFolder,
            .more = {"CUSLICE_TEST_SPY=" + log, "CUSLICE_TEST_DRIVER=" + kFakeFolder + "/libcuda.so.1"}};
}

Outcome run_scenario(const std::string& name, int major, const Machine& machine) {
    char self[PATH_MAX] = {};
    if (::readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        throw std::runtime_error("no /proc/self/exe");
    const Folder books;
    std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=" + machine.library_path,
                                            "CUSLICE_FAKE=" + machine.spec, "CUSLICE_FAKE_DIR=" + books.path(),
                                            "CUSLICE_TEST_CUDART=" + std::to_string(major)};
    environment.insert(environment.end(), machine.more.begin(), machine.more.end());
    // A comma in what Catch2 is asked for means "or".
    std::string asked;
    for (const char letter : name)
        asked += letter == ',' ? "\\," : std::string(1, letter);
    Outcome outcome = run({self, asked}, environment);
    // Its version 2 calls that a success.
    if (outcome.out.find("No test cases matched") != std::string::npos)
        throw std::runtime_error("there is no " + name);
    return outcome;
}

std::string soname_of(int major) { return "libcudart.so." + (major == 11 ? "11.0" : std::to_string(major)); }

int runtime_major() {
    const char* major = std::getenv("CUSLICE_TEST_CUDART");
    if (major == nullptr)
        throw std::runtime_error("this test is a part of another one, which starts it");
    return std::atoi(major);
}

void* runtime_function(const char* name) {
    static void* const library = ::dlopen(soname_of(runtime_major()).c_str(), RTLD_NOW);
    if (library == nullptr)
        throw std::runtime_error(::dlerror());
    void* const function = ::dlsym(library, name);
    if (function == nullptr)
        throw std::runtime_error(std::string("no ") + name);
    return function;
}

cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph) {
    if (runtime_major() > 11)
        return RT(cudaGraphInstantiate)(executable, graph, 0);
    using Form = cudaError_t (*)(cudaGraphExec_t*, cudaGraph_t, cudaGraphNode_t*, char*, size_t);
    cudaGraphNode_t at = nullptr;
    char log[64];
    return reinterpret_cast<Form>(runtime_function("cudaGraphInstantiate"))(executable, graph, &at, log, sizeof log);
}

void* driver_function(const char* name) {
    // NVIDIA's header calls it deprecated. 11 has no status, and leaves the last argument alone.
    using Form = cudaError_t (*)(const char*, void**, unsigned long long, cudaDriverEntryPointQueryResult*);
    void* function = nullptr;
    const auto find = reinterpret_cast<Form>(runtime_function("cudaGetDriverEntryPoint"));
    return find(name, &function, cudaEnableDefault, nullptr) == cudaSuccess ? function : nullptr;
}

}  // namespace cuslice::tests
