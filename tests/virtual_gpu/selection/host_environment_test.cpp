// SPDX-License-Identifier: Apache-2.0
// Where cuslice's settings come from in a program that cleans its environment.
#include "virtual_gpu/selection/host_environment.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "config/handover.h"
#include "tests/catch.h"
#include "tests/no_memory.h"

extern char** environ;

using namespace cuslice;

namespace {

/// Lines of the environment that cuslice reads, in the order in which they stand there.
std::vector<std::string> read_lines() {
    std::vector<std::string> found;
    const HostEnvironment environment;
    for (const char* const* line = environment.lines(); *line; ++line)
        if (std::string(*line).rfind("CUSLICE_", 0) == 0 || std::string(*line).rfind("OWN_", 0) == 0)
            found.emplace_back(*line);
    return found;
}

class Environment {
  public:
    explicit Environment(std::vector<std::string> lines) : lines_(std::move(lines)) {
        for (std::string& line : lines_)
            pointers_.push_back(line.data());
        pointers_.push_back(nullptr);
        environ = pointers_.data();
    }
    ~Environment() { environ = before_; }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    char** before_ = environ;
    std::vector<std::string> lines_;
    std::vector<char*> pointers_;
};

const std::string kHanded = std::string(kHandOver) + "=limit";

}  // namespace

// Lines are kept for the life of the process, so this is one case.
TEST_CASE("what cuslice run handed on counts in a program that has removed it, and not in place of its own") {
    using Texts = std::vector<std::string>;
    {
        // Not started by cuslice run: nothing is kept.
        const Environment plain({"CUSLICE_LIMIT=1GiB", "OWN_A=1"});
        keep_handed_on();
    }
    {
        const Environment cleaned({"OWN_A=1"});
        CHECK_FALSE(was_cleared());
        CHECK(read_lines() == Texts{"OWN_A=1"});
    }
    {
        const Environment started({kHanded, "CUSLICE_JOB=a", "OWN_A=1", "CUSLICE_LOG=quiet"});
        keep_handed_on();
        CHECK_FALSE(was_cleared());
        CHECK(read_lines() == Texts{kHanded, "CUSLICE_JOB=a", "OWN_A=1", "CUSLICE_LOG=quiet"});
    }
    {
        const Environment cleaned({"OWN_B=2", "CUSLICE_LOG=debug"});
        CHECK(was_cleared());
        CHECK(read_lines() == Texts{"OWN_B=2", "CUSLICE_LOG=debug", kHanded, "CUSLICE_JOB=a"});
        // Half of the settings would be another limit than was asked for.
        const tests::NoMemory none;
        CHECK(HostEnvironment().lines() == environ);
    }
    char** const before = environ;
    environ = nullptr;
    CHECK(was_cleared());
    CHECK(read_lines() == Texts{kHanded, "CUSLICE_JOB=a", "CUSLICE_LOG=quiet"});
    environ = before;
}
