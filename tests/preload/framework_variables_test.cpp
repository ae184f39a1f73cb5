// SPDX-License-Identifier: Apache-2.0
// Frameworks' variables by the environment alone, beside cuslice run: read as JAX and TensorFlow read them
// (guest/framework_variables.py), and with the memory that a pool like TensorFlow's gets then (guest/frameworks.cpp).
#include "tests/preload/machine.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kPython = CUSLICE_TEST_PYTHON;
const std::string kGuest = CUSLICE_TEST_GUESTS "/guest_frameworks";

void need_python() {
    if (kPython.empty())
        skip("there is no python3 here");
}

Words script(const Words& words = {}) {
    return joined({kPython, CUSLICE_TEST_SOURCES "/guest/framework_variables.py"}, words);
}

// "PREALLOCATE FRACTION GROWTH RESERVE", as the program found them.
std::string found(const Outcome& outcome) {
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out.substr(0, outcome.out.find('\n'));
}

// TensorFlow's two.
std::string of_tensorflow(const std::string& all) {
    const Words words = split_words(all);
    return words.at(2) + " " + words.at(3);
}

struct Ways {
    explicit Ways(const std::string& gpus) : machine(gpus) {}

    std::string by_launcher(const Words& options, const Words& more = {}) const {
        return found(run(machine.launch(options, script()), machine.outside(more)));
    }
    std::string by_environment(const Words& variables, const Words& words = {}) const {
        return found(run(script(words), sliced(machine.fake, machine.books.path(), variables)));
    }
    std::string by_file(const std::string& text) const {
        return by_environment({"CUSLICE_CONFIG=" + machine.books.write("settings/cuslice.toml", text)});
    }
    Machine machine;
};

// A pool like TensorFlow's, and all that the process holds then.
std::pair<uint64_t, uint64_t> pool(const Machine& machine, Guest& guest) {
    REQUIRE(guest.code("open 0") == kSuccess);
    const uint64_t got = guest.number("tensorflow 0", 2);
    return {got, machine.held(guest, 0).used};
}

}  // namespace

TEST_CASE("TensorFlow finds the same variables by the environment or a file as under the launcher") {
    need_python();
    struct Row {
        const char* gpus;
        Words options, variables;
        const char* file;
        const char* told;  // GROWTH RESERVE
    };
    const Row rows[] = {
        {"1xt4", {}, {}, "", "none none"},
        {"1xt4", {"--limit", "700MiB"}, {"CUSLICE_LIMIT=700MiB"}, "[memory]\nlimit = \"700MiB\"\n", nullptr},
        {"1xh200", {"--limit", "2650MiB"}, {"CUSLICE_LIMIT=2650MiB"}, "[memory]\nlimit = \"2650MiB\"\n", "none 192"},
        {"1xt4", {"--fraction", "0.4"}, {"CUSLICE_FRACTION=0.4"}, "[memory]\nfraction = 0.4\n", "none 192"},
        {"2xt4",
         {"--limit", "0=700MiB,1=4GiB"},
         {"CUSLICE_LIMIT=0=700MiB,1=4GiB"},
         "[gpu.0]\nlimit = \"700MiB\"\n[gpu.1]\nlimit = \"4GiB\"\n",
         nullptr},
        {"1xt4",
         {"--limit", "1024MiB+context"},
         {"CUSLICE_LIMIT=1024MiB+context"},
         "[memory]\nlimit = \"1024MiB+context\"\n",
         "none 0"},
        {"1xt4",
         {"--limit", "4GiB", "--headroom", "1GiB"},
         {"CUSLICE_LIMIT=4GiB", "CUSLICE_HEADROOM=1GiB"},
         "[memory]\nlimit = \"4GiB\"\nheadroom = \"1GiB\"\n",
         "none 192"},
        {"1xt4", {"--split", "0=4"}, {"CUSLICE_SPLIT=0=4"}, "[gpu.0]\nsplit = 4\n", "none 192"},
        // Little is left beside the GPU's own context, and less beside a larger one.
        {"1xlaptop-2g", {"--limit", "450MiB"}, {"CUSLICE_LIMIT=450MiB"}, "[memory]\nlimit = \"450MiB\"\n", nullptr},
        {"1xlaptop-2g",
         {"--allocator", "growth"},
         {"CUSLICE_ALLOCATOR=growth"},
         "[memory]\nallocator = \"growth\"\n",
         "true none"},
        {"1xlaptop-2g",
         {"--allocator", "growth", "--limit", "1GiB"},
         {"CUSLICE_ALLOCATOR=growth", "CUSLICE_LIMIT=1GiB"},
         "[memory]\nallocator = \"growth\"\nlimit = \"1GiB\"\n",
         nullptr},
        {"1xt4",
         {"--limit", "4GiB", "--allocator", "growth", "--no-framework-env"},
         {"CUSLICE_LIMIT=4GiB", "CUSLICE_ALLOCATOR=growth", "CUSLICE_NO_FRAMEWORK_ENV=yes"},
         "no-framework-env = true\n[memory]\nlimit = \"4GiB\"\nallocator = \"growth\"\n",
         "none none"},
    };
    for (const Row& row : rows) {
        const Ways ways(row.gpus);
        INFO(row.gpus << ": " << (row.variables.empty() ? "nothing" : row.variables[0]));
        const std::string launched = of_tensorflow(ways.by_launcher(row.options));
        if (row.told)
            CHECK(launched == row.told);
        CHECK(launched == of_tensorflow(ways.by_environment(row.variables)));
        CHECK(launched == of_tensorflow(ways.by_file(row.file)));
    }
}

TEST_CASE("JAX finds PREALLOCATE by the environment as under the launcher, and not what only files or GPUs say") {
    need_python();
    const Ways ways("2xt4");
    CHECK(split_words(ways.by_launcher({"--allocator", "growth"}))[0] == "false");
    for (const char* grows : {"CUSLICE_ALLOCATOR=growth", "CUSLICE_ALLOCATOR=1=growth,0=direct"})
        CHECK(split_words(ways.by_environment({grows}))[0] == "false");
    for (const char* not_so : {"CUSLICE_ALLOCATOR=prealloc", "CUSLICE_ALLOCATOR=0=direct", "CUSLICE_LIMIT=4GiB"})
        CHECK(split_words(ways.by_environment({not_so}))[0] == "none");
    CHECK(split_words(ways.by_environment({"CUSLICE_ALLOCATOR=growth", "CUSLICE_NO_FRAMEWORK_ENV=yes"}))[0] == "none");
    CHECK(split_words(ways.by_environment({"CUSLICE_ALLOCATOR=growth", "CUSLICE_NO_FRAMEWORK_ENV=no"}))[0] == "false");
    // Read before the library may read a file, or knows the GPUs: docs/configuration.md says so.
    CHECK(ways.by_file("[memory]\nallocator = \"growth\"\n") == "none none true none");
    CHECK(ways.by_environment({"CUSLICE_LIMIT=4GiB"}) == "none none none 192");
}

TEST_CASE("a variable that the user has set stays, by the environment as under the launcher") {
    need_python();
    const Ways ways("1xt4");
    const Words own = {"TF_FORCE_GPU_ALLOW_GROWTH=false", "XLA_PYTHON_CLIENT_PREALLOCATE=true",
                       "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=7", "XLA_PYTHON_CLIENT_MEM_FRACTION=.4"};
    const std::string stays = "true .4 false 7";
    CHECK(ways.by_launcher({"--limit", "4GiB", "--allocator", "growth"}, own) == stays);
    CHECK(ways.by_environment(joined({"CUSLICE_LIMIT=4GiB", "CUSLICE_ALLOCATOR=growth"}, own)) == stays);
}

TEST_CASE("a process that inherits variables of cuslice's and has other settings finds those of its own") {
    need_python();
    const Ways ways("1xt4");
    const Words outer = {"CUSLICE_LIMIT=4GiB", "CUSLICE_ALLOCATOR=growth"};
    const std::string whole = ways.by_environment(outer);
    CHECK(whole == "false none true 192");
    const std::string small = of_tensorflow(ways.by_environment({"CUSLICE_LIMIT=700MiB"}));
    // The same settings, smaller ones, and none at all.
    CHECK(ways.by_environment(outer, {"UNRELATED=1"}) == whole);
    const Words smaller = {"CUSLICE_LIMIT=700MiB", "CUSLICE_ALLOCATOR"};
    CHECK(ways.by_environment(outer, smaller) == "none none " + small);
    CHECK(ways.by_environment(outer, {"CUSLICE_LIMIT", "CUSLICE_ALLOCATOR"}) == "none none none none");
    CHECK(ways.by_environment(outer, {"CUSLICE_NO_FRAMEWORK_ENV=yes"}) == "none none none none");
    // A variable that the program changes is the user's from then on.
    CHECK(ways.by_environment(outer, {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB=50"}) == "false none true 50");
    CHECK(ways.by_environment(outer, {"TF_FORCE_GPU_ALLOW_GROWTH"}) == "false none none 192");
    // Under a launcher, too: an inner one decides anew.
    const Machine& machine = ways.machine;
    const Words inner = machine.launch({"--limit", "700MiB", "--per-process"}, script());
    const Words both = machine.launch({"--limit", "4GiB", "--per-process"}, inner);
    CHECK(of_tensorflow(found(run(both, machine.outside()))) == small);
}

TEST_CASE("a pool like TensorFlow's gets by the environment what it gets under the launcher") {
    struct Row {
        const char* gpus;
        Words options, variables;
    };
    const Row rows[] = {
        {"1xh200", {"--limit", "2650MiB"}, {"CUSLICE_LIMIT=2650MiB"}},
        {"1xh200", {"--limit", "8GiB", "--allocator", "growth"}, {"CUSLICE_LIMIT=8GiB", "CUSLICE_ALLOCATOR=growth"}},
        {"1xlaptop-2g", {"--allocator", "growth"}, {"CUSLICE_ALLOCATOR=growth"}},
        {"1xt4", {"--split", "0=2048MiB+2048MiB+context"}, {"CUSLICE_SPLIT=0=2048MiB+2048MiB+context"}},
    };
    for (const Row& row : rows) {
        INFO(row.gpus << ": " << row.variables[0]);
        const Machine launched(row.gpus), alone(row.gpus);
        const auto with_launcher = launched.start(row.options, {}, {kGuest});
        Guest with_variables({kGuest}, sliced(alone.fake, alone.books.path(), row.variables));
        CHECK(pool(launched, *with_launcher) == pool(alone, with_variables));
    }
}

}  // namespace cuslice::tests
