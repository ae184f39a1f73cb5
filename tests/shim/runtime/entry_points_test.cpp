// SPDX-License-Identifier: Apache-2.0
// The driver's functions, asked for through the runtime.
#include "shim/runtime/entry_points.h"

#include "tests/catch.h"
#include "tests/shim/runtime/made_up_runtime.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

void* const kTheirs = reinterpret_cast<void*>(uintptr_t{0x1});
void* const kOurs = reinterpret_cast<void*>(uintptr_t{0x4711});  // as the driver shim has it

void* found = kTheirs;
cudaError_t find(const char*, void** function, unsigned long long, cudaDriverEntryPointQueryResult*) {
    if (function)
        *function = found;
    return made_up().runtime_says;
}
cudaError_t find_of_11(const char* name, void** function, unsigned long long flags) {
    return find(name, function, flags, nullptr);
}
cudaError_t find_by_version(const char* name, void** function, unsigned, unsigned long long flags,
                            cudaDriverEntryPointQueryResult* status) {
    return find(name, function, flags, status);
}
cudaError_t runtime_version(int* version) {
    *version = 12090;
    return cudaSuccess;
}

struct Scene {
    Scene() {
        found = kTheirs;
        for (const runtime::Id id : {runtime::Id::cudaGetDriverEntryPoint, runtime::Id::cudaGetDriverEntryPoint_ptsz})
            runtime.put(id, &find);
        for (const runtime::Id id :
             {runtime::Id::cudaGetDriverEntryPointByVersion, runtime::Id::cudaGetDriverEntryPointByVersion_ptsz})
            runtime.put(id, &find_by_version);
        runtime.put(runtime::Id::cudaRuntimeGetVersion, &runtime_version);
    }
    MadeUpRuntime runtime;
    void* function = nullptr;
};

}  // namespace

TEST_CASE("a function of the driver is the driver shim's, in the runtime's version and the caller's kind of stream") {
    Scene scene;
    const std::string legacy = std::to_string(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    const std::string per_thread = std::to_string(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    CHECK(ASK(cudaGetDriverEntryPoint, "cuMemAlloc", &scene.function, 0ull, nullptr) ==
          "cuGetProcAddress_v2 cuMemAlloc 12090 " + legacy);
    CHECK(scene.function == kOurs);
    CHECK(ASK(cudaGetDriverEntryPoint_ptsz, "cuMemAlloc", &scene.function, 0ull, nullptr) ==
          "cuGetProcAddress_v2 cuMemAlloc 12090 " + per_thread);
    CHECK(ASK(cudaGetDriverEntryPointByVersion, "cuMemAlloc", &scene.function, 11030u, 0ull, nullptr) ==
          "cuGetProcAddress_v2 cuMemAlloc 11030 " + legacy);
    CHECK(ASK(cudaGetDriverEntryPointByVersion_ptsz, "cuMemAlloc", &scene.function, 11030u, 0ull, nullptr) ==
          "cuGetProcAddress_v2 cuMemAlloc 11030 " + per_thread);
    // Flags that the caller passes take precedence.
    for (const unsigned long long flags : {1ull, 2ull}) {
        const std::string asked = std::to_string(flags);
        CHECK(ASK(cudaGetDriverEntryPoint, "cuMemAlloc", &scene.function, flags, nullptr) ==
              "cuGetProcAddress_v2 cuMemAlloc 12090 " + asked);
        CHECK(ASK(cudaGetDriverEntryPointByVersion_ptsz, "cuMemAlloc", &scene.function, 11030u, flags, nullptr) ==
              "cuGetProcAddress_v2 cuMemAlloc 11030 " + asked);
    }
    // A runtime that doesn't tell its version has the first of its major one.
    scene.runtime.functions.erase(runtime::Id::cudaRuntimeGetVersion);
    CHECK(ASK(cudaGetDriverEntryPoint, "cuMemAlloc", &scene.function, 1ull, nullptr) ==
          "cuGetProcAddress_v2 cuMemAlloc 13000 1");
}

TEST_CASE("a driver with the first form of its look-up alone is asked by that one, and by a runtime of 11") {
    Scene scene;
    scene.runtime.old_driver = true;
    const std::string legacy = std::to_string(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    CHECK(ASK(cudaGetDriverEntryPoint, "cuMemAlloc", &scene.function, 0ull, nullptr) ==
          "cuGetProcAddress cuMemAlloc 12090 " + legacy);
    CHECK(scene.function == kOurs);
    scene.function = nullptr;
    scene.runtime.old_driver = false;
    scene.runtime.put(runtime::Id::cudaGetDriverEntryPoint, &find_of_11);
    CHECK(ASK_FORM(cudaGetDriverEntryPoint, 11, "cuMemAlloc", &scene.function, 0ull) ==
          "cuGetProcAddress_v2 cuMemAlloc 12090 " + legacy);
    CHECK(scene.function == kOurs);
}

TEST_CASE("what neither the runtime nor the driver shim has stays as the runtime says") {
    Scene scene;
    const auto ask_both = [&] {
        scene.function = nullptr;
        return ASK(cudaGetDriverEntryPoint, "cuNone", &scene.function, 0ull, nullptr) +
               ASK(cudaGetDriverEntryPointByVersion, "cuNone", &scene.function, 11030u, 0ull, nullptr);
    };
    SECTION("the runtime has none") {
        found = nullptr;
        CHECK(ask_both().empty());
        CHECK(scene.function == nullptr);
    }
    SECTION("the runtime refuses") {
        scene.runtime.runtime_says = cudaErrorInvalidValue;
        CHECK(ask_both().empty());
        CHECK(scene.runtime.result == cudaErrorInvalidValue);
        CHECK(scene.function == kTheirs);
    }
    SECTION("the driver shim refuses") {
        scene.runtime.driver_says = CUDA_ERROR_NOT_FOUND;
        ask_both();
        CHECK(scene.runtime.result == cudaSuccess);
        CHECK(scene.function == kTheirs);
    }
    SECTION("there is no place to put it") {
        CHECK(ASK(cudaGetDriverEntryPoint, "cuMemAlloc", nullptr, 0ull, nullptr).empty());
        CHECK(ASK(cudaGetDriverEntryPointByVersion, "cuMemAlloc", nullptr, 11030u, 0ull, nullptr).empty());
    }
    SECTION("no GPU is split") {
        scene.runtime.split = false;
        CHECK(ask_both().empty());
        CHECK(scene.function == kTheirs);
    }
}
