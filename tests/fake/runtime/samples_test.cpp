// SPDX-License-Identifier: Apache-2.0
// The sample programs, unmodified, on a laptop's GPU.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/fake/runtime/scenario.h"
#include "tests/skip.h"

using namespace cuslice::tests;

namespace {

constexpr long mib = 1 << 20;

Outcome run_sample(const std::string& name, const std::vector<std::string>& options = {}) {
    const Folder books;
    std::vector<std::string> words = {std::string(CUSLICE_TEST_SAMPLES) + "/" + name};
    words.insert(words.end(), options.begin(), options.end());
    return run(words, {"PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=" + kFakeFolder, "CUSLICE_FAKE=1xlaptop-2g",
                       "CUSLICE_FAKE_DIR=" + books.path()});
}

}  // namespace

TEST_CASE("the samples take all memory that there is") {
    for (const std::string name : {"driver_fill", "runtime_fill"}) {
        const Outcome outcome = run_sample(name, {"--json"});
        INFO(name << "\n" << outcome.out << outcome.err);
        REQUIRE(outcome.exit_code == 0);
        std::istringstream lines(outcome.out);
        std::string full_line;
        std::string freed_line;
        std::getline(lines, full_line);
        std::getline(lines, freed_line);
        const auto full = nlohmann::json::parse(full_line);
        const auto freed = nlohmann::json::parse(freed_line);
        CHECK(full["program"] == name);
        CHECK(full["total"] == 2002 * mib);
        CHECK(full["verified"] == true);
        const long before = full["free_before"];
        const long got = full["got"];
        CHECK(before < 2002 * mib);
        CHECK(got <= before);
        // Less than the smallest block that it asks for is left, but for what the device takes in whole pages.
        CHECK(before - got < 2 * mib);
        CHECK(full["free"] == before - got);
        CHECK(freed["free"] == before);
    }
}

TEST_CASE("the samples also speak to people") {
    const Outcome outcome = run_sample("driver_fill");
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("driver_fill on ") == 0);
    CHECK(outcome.out.find("2002.00 MiB") != std::string::npos);
    CHECK(run_sample("driver_fill", {"--nonsense"}).exit_code == 2);
}

TEST_CASE("a program with the static runtime gets one line that says what to do") {
    if (!std::filesystem::exists(std::string(CUSLICE_TEST_SAMPLES) + "/runtime_fill_static")) {
        skip("nvcc is needed to build a program with the static runtime");
        return;
    }
    const Outcome outcome = run_sample("runtime_fill_static");
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 1);  // its own exit, no signal
    std::istringstream lines(outcome.err);
    int ours = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("cuslice", 0) != 0)
            continue;
        ++ours;
        CHECK(line.find("-cudart shared") != std::string::npos);
    }
    CHECK(ours == 1);
}
