// SPDX-License-Identifier: Apache-2.0
// How the runtime reaches the driver: by dlopen and cuGetProcAddress alone, as NVIDIA's does.

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <sstream>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

namespace {

struct LookUp {
    std::string name;
    int version = 0;
    unsigned long long flags = 0;
};

std::vector<LookUp> look_ups(const std::string& text) {
    std::vector<LookUp> found;
    std::istringstream lines(text);
    for (LookUp one; lines >> one.name >> one.version >> one.flags;)
        found.push_back(one);
    return found;
}

bool has(const std::vector<LookUp>& found, const LookUp& wanted) {
    return std::any_of(found.begin(), found.end(), [&](const LookUp& one) {
        return one.name == wanted.name && one.version == wanted.version && one.flags == wanted.flags;
    });
}

}  // namespace

TEST_CASE("the driver is asked as NVIDIA's runtime asks it") {
    for (const int major : kMajors) {
        const Folder folder;
        const std::string log = folder.path() + "/look-ups";
        const Outcome outcome = run_scenario("child: legacy and per-thread calls", major, spied_machine(log));
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.exit_code == 0);
        const std::vector<LookUp> found = look_ups(read_text(log));
        REQUIRE(found.size() > 10);
        CHECK(found[0].name == (major == 11 ? "cuGetProcAddress" : "(empty)"));
        CHECK(found[0].version == (major == 11 ? 11080 : 0));
        CHECK(has(found, {"cuMemAlloc", 3020, 0}));
        CHECK(has(found, {"cuMemcpyHtoD", 3020, 0}));
        CHECK(has(found, {"cuMemcpyHtoD", 7000, 2}));
        CHECK(has(found, {"cuMemcpyHtoDAsync", 3020, 0}));
        CHECK(has(found, {"cuMemcpyHtoDAsync", 7000, 2}));
        CHECK(has(found, {"cuMemsetD8Async", 7000, 2}));
        CHECK(has(found, {"cuMemAllocAsync", 11020, 2}));
        CHECK(has(found, {"cuStreamSynchronize", 7000, 2}));
        // Each form is looked up once, however often it is called.
        std::set<std::string> once;
        for (const LookUp& one : found) {
            INFO(one.name << " " << one.version << " " << one.flags);
            CHECK(once.insert(one.name + std::to_string(one.version) + "," + std::to_string(one.flags)).second);
        }
        // Every form that is asked for is one that a driver has.
        const std::string functions = read_text(CUSLICE_TEST_FUNCTIONS);
        for (const LookUp& one : found) {
            INFO(one.name << " " << one.version << " " << one.flags);
            if (one.name == found[0].name || one.name == "cuslice_fake_private_driver")
                continue;
            const std::string form = ", " + one.name + ", " + std::to_string(one.version) + ", " +
                                     (one.flags == 2 ? "per_thread" : "legacy") + ",";
            CHECK(functions.find(form) != std::string::npos);
        }
    }
}

TEST_CASE("child: legacy and per-thread calls", "[.child]") {
    std::array<char, 64> host{};
    for (int round = 0; round < 2; ++round) {
        void* pointer = nullptr;
        void* other = nullptr;
        REQUIRE(RT(cudaMalloc)(&pointer, 64) == cudaSuccess);
        const auto with = [](const char* name) { return runtime_function(name); };
        using Copy = decltype(&::cudaMemcpy);
        using CopyAsync = decltype(&::cudaMemcpyAsync);
        for (const char* name : {"cudaMemcpy", "cudaMemcpy_ptds"}) {
            CHECK(reinterpret_cast<Copy>(with(name))(pointer, host.data(), 64, cudaMemcpyHostToDevice) == cudaSuccess);
        }
        for (const char* name : {"cudaMemcpyAsync", "cudaMemcpyAsync_ptsz"}) {
            CHECK(reinterpret_cast<CopyAsync>(with(name))(pointer, host.data(), 64, cudaMemcpyHostToDevice, nullptr) ==
                  cudaSuccess);
        }
        const auto set = reinterpret_cast<decltype(&::cudaMemsetAsync)>(with("cudaMemsetAsync_ptsz"));
        CHECK(set(pointer, 0, 64, nullptr) == cudaSuccess);
        const auto allocate =
            reinterpret_cast<cudaError_t (*)(void**, size_t, cudaStream_t)>(with("cudaMallocAsync_ptsz"));
        CHECK(allocate(&other, 64, nullptr) == cudaSuccess);
        const auto wait = reinterpret_cast<decltype(&::cudaStreamSynchronize)>(with("cudaStreamSynchronize_ptsz"));
        CHECK(wait(nullptr) == cudaSuccess);
    }
}

SCENARIO_IN_CHILD("the program finds the driver's functions through the runtime") {
    void* function = nullptr;
    void* other = nullptr;
    if (runtime_major() == 11) {
        using Find = cudaError_t (*)(const char*, void**, unsigned long long);
        const auto find = reinterpret_cast<Find>(runtime_function("cudaGetDriverEntryPoint"));
        CHECK(find("cuMemcpy", &function, cudaEnableLegacyStream) == cudaSuccess);
        CHECK(find("cuMemcpy", &other, cudaEnablePerThreadDefaultStream) == cudaSuccess);
        CHECK((function != nullptr && function != other));
        CHECK(find("cuNoSuchFunction", &function, cudaEnableDefault) == cudaErrorSymbolNotFound);
        CHECK(find("cuGreenCtxCreate", &function, cudaEnableDefault) == cudaErrorSymbolNotFound);  // of 12.4
        CHECK(find(nullptr, &function, cudaEnableDefault) == cudaErrorInvalidValue);
        return;
    }
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    // NVIDIA's header calls it deprecated, which its type isn't.
    const auto plain =
        reinterpret_cast<cudaError_t (*)(const char*, void**, unsigned long long, cudaDriverEntryPointQueryResult*)>(
            runtime_function("cudaGetDriverEntryPoint"));
    CHECK(plain("cuMemAlloc", &function, cudaEnableDefault, &status) == cudaSuccess);
    CHECK(status == cudaDriverEntryPointSuccess);
    CHECK(function != nullptr);
    const auto by_version = RT(cudaGetDriverEntryPointByVersion);
    CHECK(by_version("cuMemcpy", &function, 12000, cudaEnableLegacyStream, &status) == cudaSuccess);
    CHECK(by_version("cuMemcpy", &other, 12000, cudaEnablePerThreadDefaultStream, &status) == cudaSuccess);
    CHECK(function != other);
    CHECK(by_version("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &status) == cudaSuccess);
    CHECK(function == nullptr);
    CHECK(status == cudaDriverEntryPointSymbolNotFound);
    CHECK(by_version(nullptr, &function, 12000, cudaEnableDefault, &status) == cudaErrorInvalidValue);
}
