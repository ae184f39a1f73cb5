// SPDX-License-Identifier: Apache-2.0
// Test bodies that run in a child process of their own, on a fake machine of their own, once for each of the
// libraries: CUDA state lives as long as its process.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/child.h"

namespace cuslice::tests {

inline const std::string kFakeFolder = CUSLICE_TEST_FAKE_FOLDER;

/// The driver's side of a child: the fake machine, and where its libraries are.
struct Machine {
    std::string spec = "2xa100-40g,1xt4";
    std::string library_path = kFakeFolder;
    std::vector<std::string> more = {};  ///< further NAME=VALUE
};

/// A machine whose driver is the spy before the fake one; it writes the look-ups into the file `log`.
Machine spied_machine(const std::string& log);

/// Runs the hidden test `name` of this program in a child, with the library libcudart.so.`major`.
Outcome run_scenario(const std::string& name, int major, const Machine& machine = {});

/// The function `name` of the library that this child tests; it is opened by its SONAME at the first call.
void* runtime_function(const char* name);

/// Major version of the library that this child tests: 11, 12 or 13.
int runtime_major();
inline constexpr int kMajors[] = {11, 12, 13};
std::string soname_of(int major);

/// cudaGraphInstantiate, in the form that this child's library has.
cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph);
/// The driver's function, asked for through the runtime; null if there is none.
void* driver_function(const char* name);

/// A function of the library under test with the type that NVIDIA's 13.0 header gives it.
#define RT(name) reinterpret_cast<decltype(&::name)>(::cuslice::tests::runtime_function(#name))

/// SCENARIO_IN_CHILD("what holds", Machine{...}) { body } runs the body for all libraries and fails as it fails.
#define SCENARIO_IN_CHILD(name, ...)                                                                   \
    TEST_CASE(name) {                                                                                  \
        for (const int major : kMajors) {                                                              \
            const auto outcome = ::cuslice::tests::run_scenario("child: " name, major, ##__VA_ARGS__); \
            INFO(::cuslice::tests::soname_of(major) << "\n" << outcome.out << outcome.err);            \
            CHECK(outcome.exit_code == 0);                                                             \
        }                                                                                              \
    }                                                                                                  \
    TEST_CASE("child: " name, "[.child]")

}  // namespace cuslice::tests
