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

bool any(const SharedRuntime&, void*, Reason&) { return true; }

}  // namespace

TEST_CASE("the runtime that is named is taken, if it is of the program's major version") {
    const std::string path = kFolder + "/libcudart.so.13";
    const Variable named("CUSLICE_RUNTIME", path);
    Reason why;
    RuntimeLibrary fitting, other;
    REQUIRE(fitting.open(13, any, nullptr, why));
    const SharedRuntime functions = fitting.functions();
    CHECK(std::string(functions.path) == path);
    CHECK(functions.find("cudaMalloc", functions.argument) != nullptr);
    // The library uses this one, and doesn't export it.
    CHECK(functions.find("dlopen", functions.argument) == nullptr);
    CHECK_FALSE(other.open(12, any, nullptr, why));
    CHECK(why.view() ==
          "CUSLICE_RUNTIME: " + path + ": can't be loaded, or is no libcudart.so.12, which the program's own would be");
}

TEST_CASE("a runtime is found where toolkits and packages have it") {
    const Variable home("CUDA_HOME", std::string(CUSLICE_TEST_TOOLKIT));
    Reason why;
    RuntimeLibrary library;
    REQUIRE(library.open(12, any, nullptr, why));
    CHECK(std::string(library.functions().path).ends_with("/libcudart.so.12"));
}

TEST_CASE("of several runtimes the first that fits is taken, and of none that fits the reason is told") {
    const Variable home("CUDA_HOME", std::string(CUSLICE_TEST_TOOLKIT));
    const Variable path("CUDA_PATH", std::string(CUSLICE_TEST_TOOLKIT) + "/other");
    struct Seen {
        int refused = 0, count = 0;
        std::string last;
    };
    const auto fits = [](const SharedRuntime& runtime, void* argument, Reason& why) {
        auto& seen = *static_cast<Seen*>(argument);
        seen.last = runtime.path;
        why.assign("too old: ", runtime.path);
        return ++seen.count > seen.refused;
    };
    Reason why;
    Seen second{1, 0, {}}, none{1000, 0, {}};
    RuntimeLibrary library, unfit;
    REQUIRE(library.open(12, fits, &second, why));
    CHECK(second.count == 2);
    CHECK(std::string(library.functions().path) == second.last);
    CHECK_FALSE(unfit.open(12, fits, &none, why));
    CHECK(none.count >= 2);
    CHECK(why.view() == "too old: " + none.last);
}

TEST_CASE("where there is no runtime the line says which is needed, and how to get it") {
    Reason why;
    RuntimeLibrary library;
    CHECK_FALSE(library.open(99, any, nullptr, why));
    CHECK(why.view() ==
          "there is no libcudart.so.99 here, which NVIDIA's toolkit has, and the package nvidia-cuda-runtime (pip "
          "install); or name one with --runtime FILE");
}

}  // namespace cuslice
