// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/runtime_library.h"

#include <cstdlib>
#include <string>

#include "tests/catch.h"

namespace cuslice {

namespace {

const std::string kFolder = CUSLICE_TEST_FAKE_FOLDER;

// A variable of this process's environment, for a test.
struct Variable {
    Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
    ~Variable() { unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    const char* name_;
};

}  // namespace

TEST_CASE("the runtime that is named is taken, if it is of the program's major version") {
    const std::string path = kFolder + "/libcudart.so.13";
    const Variable named("CUSLICE_RUNTIME", path);
    Reason why;
    RuntimeLibrary fitting, other;
    REQUIRE(fitting.open(13, why));
    const SharedRuntime functions = fitting.functions();
    CHECK(std::string(functions.path) == path);
    CHECK(functions.find("cudaMalloc", functions.argument) != nullptr);
    // The library uses this one, and doesn't export it.
    CHECK(functions.find("dlopen", functions.argument) == nullptr);
    CHECK_FALSE(other.open(12, why));
    CHECK(why.view() ==
          "CUSLICE_RUNTIME: " + path + ": can't be loaded, or is no libcudart.so.12, which the program's own would be");
}

TEST_CASE("a runtime is found where toolkits and packages have it") {
    const Variable home("CUDA_HOME", std::string(CUSLICE_TEST_TOOLKIT));
    Reason why;
    RuntimeLibrary library;
    REQUIRE(library.open(12, why));
    CHECK(std::string(library.functions().path).ends_with("/libcudart.so.12"));
}

TEST_CASE("where there is no runtime the line says which is needed, and how to get it") {
    Reason why;
    RuntimeLibrary library;
    CHECK_FALSE(library.open(99, why));
    CHECK(why.view() ==
          "there is no libcudart.so.99 here, which NVIDIA's toolkit has, and the package nvidia-cuda-runtime (pip "
          "install); or name one with --runtime PATH");
}

}  // namespace cuslice
