// SPDX-License-Identifier: Apache-2.0
// Both libraries in one process, as when two extensions of one Python program were built for different versions.

#include <dlfcn.h>

#include <cstddef>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

TEST_CASE("12 and 13 live in one process and share the context") {
    const Outcome outcome = run_scenario("child: 12 and 13 together", 13);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
}

TEST_CASE("child: 12 and 13 together", "[.child]") {
    void* const older = ::dlopen("libcudart.so.12", RTLD_NOW | RTLD_GLOBAL);
    void* const newer = ::dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
    REQUIRE(older != nullptr);
    REQUIRE(newer != nullptr);
    const auto of = [](void* library, const char* name) { return ::dlsym(library, name); };
    using Version = decltype(&::cudaRuntimeGetVersion);
    int version = 0;
    CHECK(reinterpret_cast<Version>(of(older, "cudaRuntimeGetVersion"))(&version) == cudaSuccess);
    CHECK(version == 12090);
    CHECK(reinterpret_cast<Version>(of(newer, "cudaRuntimeGetVersion"))(&version) == cudaSuccess);
    CHECK(version == 13000);
    using Malloc = cudaError_t (*)(void**, size_t);
    using Free = decltype(&::cudaFree);
    using SetDevice = decltype(&::cudaSetDevice);
    using GetDevice = decltype(&::cudaGetDevice);
    using LastError = decltype(&::cudaGetLastError);
    void* pointer = nullptr;
    CHECK(reinterpret_cast<SetDevice>(of(older, "cudaSetDevice"))(1) == cudaSuccess);
    CHECK(reinterpret_cast<Malloc>(of(older, "cudaMalloc"))(&pointer, 4096) == cudaSuccess);
    int device = -1;
    CHECK(reinterpret_cast<GetDevice>(of(newer, "cudaGetDevice"))(&device) == cudaSuccess);
    CHECK(device == 1);
    CHECK(reinterpret_cast<Free>(of(newer, "cudaFree"))(pointer) == cudaSuccess);
    CHECK(reinterpret_cast<Free>(of(newer, "cudaFree"))(pointer) == cudaErrorInvalidValue);
    CHECK(reinterpret_cast<LastError>(of(older, "cudaGetLastError"))() == cudaSuccess);
    CHECK(reinterpret_cast<LastError>(of(newer, "cudaGetLastError"))() == cudaErrorInvalidValue);
}
