// SPDX-License-Identifier: Apache-2.0
// A machine without a driver, and a driver without a GPU: programs that merely look must be able to go on.

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "tests/fake/runtime/scenario.h"
#include "tests/skip.h"

using namespace cuslice::tests;

namespace {

/// The runtimes alone, in a folder without a driver.
std::string runtimes_alone(const Folder& folder) {
    for (const char* name : {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"}) {
        std::filesystem::create_symlink(kFakeFolder + "/" + name, folder.path() + "/" + name);
    }
    return folder.path();
}

}  // namespace

TEST_CASE("without a driver every call gives cudaErrorInsufficientDriver") {
    if (::dlopen("libcuda.so.1", RTLD_NOW) != nullptr) {
        skip("this machine has a driver of its own");
        return;
    }
    const Folder folder;
    const Machine machine{.library_path = runtimes_alone(folder)};
    for (const int major : kMajors) {
        const Outcome outcome = run_scenario("child: without a driver", major, machine);
        INFO(outcome.out << outcome.err);
        CHECK(outcome.exit_code == 0);
        CHECK(outcome.err.empty());
    }
}

TEST_CASE("child: without a driver", "[.child]") {
    int number = 7;
    void* pointer = nullptr;
    CHECK(RT(cudaGetDeviceCount)(&number) == cudaErrorInsufficientDriver);
    CHECK(number == 0);
    CHECK(RT(cudaGetLastError)() == cudaErrorInsufficientDriver);
    CHECK(RT(cudaMalloc)(&pointer, 4096) == cudaErrorInsufficientDriver);
    CHECK(RT(cudaSetDevice)(0) == cudaErrorInsufficientDriver);
    CHECK(RT(cudaGetDevice)(&number) == cudaErrorInsufficientDriver);
    CHECK(RT(cudaFree)(nullptr) == cudaErrorInsufficientDriver);
    number = 7;
    CHECK(RT(cudaDriverGetVersion)(&number) == cudaSuccess);
    CHECK(number == 0);
    CHECK(RT(cudaRuntimeGetVersion)(&number) == cudaSuccess);
    CHECK(number == (runtime_major() == 11 ? 11080 : runtime_major() == 12 ? 12090 : 13000));
}

SCENARIO_IN_CHILD("with a driver and no visible GPU every call gives cudaErrorNoDevice",
                  Machine{.more = {"CUDA_VISIBLE_DEVICES="}}) {
    int number = 7;
    CHECK(RT(cudaGetDeviceCount)(&number) == cudaErrorNoDevice);
    CHECK(number == 0);
    CHECK(RT(cudaSetDevice)(0) == cudaErrorNoDevice);
    CHECK(RT(cudaDriverGetVersion)(&number) == cudaSuccess);
    CHECK(number >= 13000);
}

TEST_CASE("a driver older than the runtime is insufficient") {
    const Folder folder;
    for (const std::string version : {"10020", "11080", "12090", "13000"}) {
        for (const int major : kMajors) {
            Machine machine = spied_machine(folder.path() + "/look-ups");
            machine.more.push_back("CUSLICE_TEST_DRIVER_VERSION=" + version);
            const Outcome outcome = run_scenario("child: with a driver of some version", major, machine);
            INFO(version << " under " << major << "\n" << outcome.out << outcome.err);
            CHECK(outcome.exit_code == 0);
        }
    }
}

TEST_CASE("child: with a driver of some version", "[.child]") {
    const int version = std::atoi(std::getenv("CUSLICE_TEST_DRIVER_VERSION"));
    int number = 0;
    CHECK(RT(cudaGetDeviceCount)(&number) ==
          (version < runtime_major() * 1000 ? cudaErrorInsufficientDriver : cudaSuccess));
    CHECK(RT(cudaDriverGetVersion)(&number) == cudaSuccess);
    CHECK(number == version);
}
