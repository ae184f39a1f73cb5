// SPDX-License-Identifier: Apache-2.0
// Every name that NVIDIA's libraries export is there, with its version, and what isn't supported fails by name.

#include <dlfcn.h>

#include <cstddef>
#include <map>
#include <set>
#include <sstream>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

namespace {

constexpr bool defined = false, refused = true;
struct Versions {
    int first, last;
};
constexpr Versions all{11, 13}, from_12{12, 13}, until_12{11, 12}, only_11{11, 11}, only_12{12, 12}, only_13{13, 13};

struct Export {
    const char* name;
    Versions versions;
    bool refused;
};

#define CUSLICE_CUDART_EXPORT(name, versions, state) {#name, versions, state},
constexpr Export listed[] = {
#include "fake/runtime/exports.def"
};

std::vector<Export> exports(int major) {
    std::vector<Export> found;
    for (const Export& one : listed)
        if (one.versions.first <= major && major <= one.versions.last)
            found.push_back(one);
    return found;
}

}  // namespace

SCENARIO_IN_CHILD("every name of the genuine library is exported with the genuine version") {
    const std::string soname = soname_of(runtime_major());
    void* const library = ::dlopen(soname.c_str(), RTLD_NOW);
    REQUIRE(library != nullptr);
    const std::map<int, size_t> counts{{11, 395}, {12, 435}, {13, 422}};
    CHECK(exports(runtime_major()).size() == counts.at(runtime_major()));
    for (const Export& one : exports(runtime_major())) {
        INFO(one.name);
        CHECK(::dlvsym(library, one.name, soname.c_str()) != nullptr);
    }
}

SCENARIO_IN_CHILD("a function that is not supported says so and fails") {
    // Called with no arguments that mean anything: it must not look at them.
    for (const Export& one : exports(runtime_major())) {
        if (!one.refused)
            continue;
        INFO(one.name);
        const auto function =
            reinterpret_cast<int (*)(void*, void*, void*, void*, void*, void*)>(runtime_function(one.name));
        RT(cudaGetLastError)();
        CHECK(function(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == cudaErrorNotSupported);
        CHECK(function(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == cudaErrorNotSupported);
        CHECK(RT(cudaGetLastError)() == cudaErrorNotSupported);
    }
}

TEST_CASE("the line for a function that is not supported comes once") {
    for (const int major : kMajors) {
        const Outcome outcome = run_scenario("child: a function that is not supported says so and fails", major);
        std::set<std::string> lines;
        std::istringstream text(outcome.err);
        size_t count = 0;
        for (std::string line; std::getline(text, line); ++count)
            lines.insert(line);
        size_t expected = 0;
        for (const Export& one : exports(major)) {
            if (!one.refused)
                continue;
            ++expected;
            CHECK(lines.count("cuslice: fake CUDA runtime " + std::to_string(major) + ": " + one.name +
                              " is not supported; it fails with cudaErrorNotSupported (801)") == 1);
        }
        CHECK(count == expected);
    }
}
