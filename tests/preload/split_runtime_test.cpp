// SPDX-License-Identifier: Apache-2.0
// Split GPUs through the CUDA runtime shim: what a program sees, and that the runtime itself sees only physical GPUs.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>

#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kShim = std::filesystem::path(kPreloaded).parent_path() / "libcuslice-runtime.so";

Words split_in(const std::string& how, const std::string& fake, const std::string& folder, const Words& more = {}) {
    return sliced(
        fake, folder,
        joined({"CUSLICE_SPLIT=" + how, "LD_LIBRARY_PATH=" + kFakeFolder, "LD_PRELOAD=" + preload_list() + ":" + kShim},
               more));
}

/// Three partitions, and `list` in LD_PRELOAD.
Words preloaded(const std::string& list, const std::string& folder) {
    Words environment = split_in("0=3", "1xa100-40g", folder);
    std::erase_if(environment, [](const std::string& word) { return word.starts_with("LD_PRELOAD="); });
    return joined(environment, {"LD_PRELOAD=" + list});
}

// The ways of a program to the runtime.
struct Way {
    std::string program;
    Words environment;
};
const Way kWays[] = {{"guest_split_runtime11", {}},
                     {"guest_split_runtime12", {}},
                     {"guest_split_runtime13", {}},
                     {"guest_opened_runtime11", {"CUDART=" + kFakeFolder + "/libcudart.so.11.0"}},
                     {"guest_opened_runtime12", {"CUDART=libcudart.so.12"}},
                     {"guest_opened_runtime13", {"CUDART=" + kFakeFolder + "/libcudart.so.13"}}};

Words lines_that_begin(const std::string& word, const Words& lines) {
    Words all;
    for (const std::string& line : lines)
        if (line.rfind(word + " ", 0) == 0)
            all.push_back(line);
    return all;
}

std::set<std::string> column(const Words& lines, size_t place) {
    std::set<std::string> all;
    for (const std::string& line : lines)
        all.insert(split_words(line).at(place));
    return all;
}

std::string soname_of(const std::string& major) { return "libcudart.so." + (major == "11" ? "11.0" : major); }

bool has(std::string_view versions, const std::string& major) {
    return versions == "all" || versions == "only_" + major || (versions == "from_12" && major != "11") ||
           (versions == "until_12" && major != "13");
}

struct Export {
    const char* name;
    std::string_view versions;
};
#define CUSLICE_CUDART_EXPORT(name, versions, state) {#name, #versions},
constexpr Export kExports[] = {
#include "fake/runtime/exports.def"
};

}  // namespace

TEST_CASE("a program on the runtime sees every part as a GPU, and uses each to its own limit") {
    const Way way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
    const std::string allocator = GENERATE("direct", "growth", "prealloc");
    INFO(way.program << ' ' << allocator);
    Folder books, plain_books;
    const Outcome whole =
        run({kGuests + "/" + way.program},
            raw("1xa100-40g", plain_books.path(), joined(way.environment, {"LD_LIBRARY_PATH=" + kFakeFolder})));
    const Outcome parts =
        run({kGuests + "/" + way.program},
            split_in("0=3", "1xa100-40g", books.path(), joined(way.environment, {"CUSLICE_ALLOCATOR=" + allocator})));
    INFO(parts.out << parts.err);
    CHECK(parts.exit_code == 0);
    const Words lines = split_lines(parts.out);
    CHECK(lines_that_begin("count", lines) == Words{"count 3"});
    CHECK(lines_that_begin("wrong", lines) == Words{"wrong 0"});
    const Words gpus = lines_that_begin("gpu", lines);
    REQUIRE(gpus.size() == 3);
    CHECK(column(gpus, 3).size() == 3);
    CHECK(column(gpus, 5).size() == 3);
    CHECK(column(gpus, 7).size() == 1);
    CHECK(lines_that_begin("peer", lines).size() == 6);
    CHECK(column(lines_that_begin("peer", lines), 3) == std::set<std::string>{"1"});

    // Nothing of the physical GPU is in what the program was told. (Any other ordinal than 0 the runtime would have
    // refused, as it has one GPU.)
    const Words physical = lines_that_begin("gpu", split_lines(whole.out));
    REQUIRE(physical.size() == 1);
    for (const size_t place : {3, 5, 7}) {
        const std::string word = split_words(physical[0]).at(place);
        INFO(word);
        CHECK(parts.out.find(word) == std::string::npos);
    }
}

TEST_CASE("contexts that the runtime makes live and end on partitions as on GPUs of their own") {
    const std::string major = GENERATE("11", "12", "13");
    // How the runtime retains its context: by a table of its own, or by the driver's functions.
    const std::string door = GENERATE("private", "public");
    INFO(major << ' ' << door);
    const std::string program = kGuests + "/guest_runtime_contexts" + major;
    const Words environment = {std::string("CUSLICE_FAKE_RUNTIME=") + (door == "public" ? door : "")};
    Folder two_books, split_books;
    const Outcome two =
        run({program}, raw("2xt4", two_books.path(), joined(environment, {"LD_LIBRARY_PATH=" + kFakeFolder})));
    const Outcome split = run({program}, split_in("0=2", "1xt4", split_books.path(), environment));
    INFO(split.err);
    CHECK(two.exit_code == 0);
    CHECK(two.out.find("ended with") == std::string::npos);
    CHECK(split.out == two.out);
}

TEST_CASE("through the runtime, a stream that is given no priority has the part's") {
    const Way way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
    INFO(way.program);
    Folder books;
    const Outcome outcome = run({kGuests + "/" + way.program},
                                split_in("0=4GiB:-1+4GiB+4GiB:-5", "1xa100-40g", books.path(), way.environment));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    const Words lines = split_lines(outcome.out);
    CHECK(lines_that_begin("wrong", lines) == Words{"wrong 0"});
    CHECK(lines_that_begin("priority", lines) ==
          Words{"priority 0 -1 -1 -3", "priority 1 0 0 -3", "priority 2 -5 -5 -3", "priority unset -1 -1 -3"});
}

TEST_CASE("without a split the runtime shim changes nothing") {
    const Way way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
    Folder books, plain_books;
    const Words environment = joined(way.environment, {"LD_LIBRARY_PATH=" + kFakeFolder});
    const Outcome plainly = run({kGuests + "/" + way.program}, raw("2xa100-40g", plain_books.path(), environment));
    const Outcome sliced_one =
        run({kGuests + "/" + way.program},
            sliced("2xa100-40g", books.path(), joined(environment, {"LD_PRELOAD=" + preload_list() + ":" + kShim})));
    INFO(sliced_one.err);
    CHECK(plainly.exit_code == 0);
    CHECK(sliced_one.out == plainly.out);
}

TEST_CASE("every name of the runtime resolves behind its shim, linked and opened") {
    const std::string major = GENERATE("11", "12", "13");
    const std::string soname = soname_of(major);
    const std::string original = genuine(major == "11" ? "cudart-11.8" : "cudart-" + major, soname);
    std::string names;
    unsigned count = 0;
    for (const Export& one : kExports) {
        if (!has(one.versions, major))
            continue;
        names += std::string(one.name) + "\n";
        count++;
    }
    REQUIRE(count > 390);
    for (const std::string& library : {kFakeFolder + "/" + soname, original}) {
        if (!std::filesystem::exists(library)) {
            skip("there is no " + library + " (lab/genuine/fetch.py brings it)");
            continue;
        }
        INFO(library);
        Folder books;
        const std::string list = books.write("names", names);
        const Outcome outcome =
            run({kGuests + "/guest_runtime_names", library, soname, list}, split_in("0=2", "1xa100-40g", books.path()));
        CHECK(outcome.out == "found " + std::to_string(count) + "\n");
    }
}

TEST_CASE("a name that only a newer runtime has resolves, linked and opened") {
    Folder books;
    const std::string newer = kGuests + "/newer/libcudart.so.13";
    const Outcome outcome = run({kGuests + "/guest_newer_runtime", newer},
                                split_in("0=2", "1xa100-40g", books.path(), {"LD_LIBRARY_PATH=" + kGuests + "/newer"}));
    CHECK(outcome.out == "4711 4711\n");
}

TEST_CASE("on drivers of its age the runtime of CUDA 11 sees every part, and nothing is said of what nobody called") {
    const std::string version = GENERATE("450.248.02", "460.106.00", "470.256.02");
    CAPTURE(version);
    Folder books;
    const std::string machine =
        books.write("machine.toml", "[driver]\nversion = \"" + version + "\"\n[[gpu]]\nprofile = \"a100-40g\"\n");
    const Outcome outcome = run({kGuests + "/guest_split_runtime11"}, split_in("0=3", machine, books.path()));
    INFO(outcome.out << outcome.err);
    const Words lines = split_lines(outcome.out);
    CHECK(lines_that_begin("count", lines) == Words{"count 3"});
    const Words gpus = lines_that_begin("gpu", lines);
    REQUIRE(gpus.size() == 3);
    CHECK(column(gpus, 3).size() == 3);
    CHECK(outcome.err.find("cuDeviceGetUuid") == std::string::npos);
    CHECK(outcome.err.find("cuGetProcAddress") == std::string::npos);
}

TEST_CASE("a runtime before 11.3 has the driver's view of the parts, and is said to be too old") {
    Folder books;
    const Outcome outcome =
        run({kGuests + "/guest_old_runtime"},
            split_in("0=3", "1xa100-40g", books.path(), {"LD_LIBRARY_PATH=" + kGuests + "/old:" + kFakeFolder}));
    CHECK(outcome.out == "0 3 0 0\n");
    CHECK(outcome.err == "cuslice: the CUDA runtime in " + kGuests +
                             "/old/libcudart.so.11.0 is older than 11.3, and isn't supported where GPUs are split: use "
                             "that of CUDA 11.3 or newer\n");
}

TEST_CASE("a library with stand-ins for the runtime's names gets structures of its version's size") {
    const std::string major = GENERATE("11", "12");
    const Words split = GENERATE(Words{}, Words{"--split", "0=2"});
    CAPTURE(major, split);
    Folder books;
    const Outcome outcome = run(joined(joined({CUSLICE_TEST_LAUNCH, "run", "--fake", "1xa100-40g"}, split),
                                       {"--", kGuests + "/guest_stand_ins_user", kGuests + "/libguest_stand_ins.so"}),
                                plain({"CUSLICE_FAKE_DIR=" + books.path(), "CUDART=" + soname_of(major)}));
    INFO(outcome.err);
    CHECK(outcome.out == "0 728\n");
}

TEST_CASE("a caller that names no version gets the runtime that is loaded, whichever that is") {
    const std::string major = GENERATE("11", "12");
    CAPTURE(major);
    Folder books;
    const Outcome outcome = run({kGuests + "/guest_stand_ins_user", kGuests + "/libguest_stand_ins.so"},
                                split_in("0=2", "1xa100-40g", books.path(), {"CUDART=" + soname_of(major)}));
    INFO(outcome.err);
    CHECK(outcome.out == "0 728\n");
}

TEST_CASE("two versions in one process tell one story") {
    Folder books;
    const auto [program, other] =
        GENERATE(std::pair{"12", "13"}, std::pair{"11", "12"}, std::pair{"11", "13"}, std::pair{"13", "11"});
    const Outcome outcome = run({kGuests + "/guest_split_runtime" + program},
                                split_in("0=3", "1xa100-40g", books.path(), {"OTHER_CUDART=" + soname_of(other)}));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(lines_that_begin("other", split_lines(outcome.out)) == Words{"other 3 2"});
}

TEST_CASE("without its shim a runtime's program has its first partition, and is told so once") {
    Folder books;
    const Outcome outcome = run({kGuests + "/guest_split_runtime13"}, preloaded(preload_list(), books.path()));
    INFO(outcome.out << outcome.err);
    CHECK(lines_that_begin("count", split_lines(outcome.out)) == Words{"count 1"});
    const Words said = split_lines(outcome.err);
    CHECK(std::count_if(said.begin(), said.end(), [](const std::string& line) {
              return line.find("libcuslice-runtime.so has to be in LD_PRELOAD") != std::string::npos;
          }) == 1);
}

TEST_CASE("with its shim behind it a runtime has its program's calls to itself, and that is said once") {
    const std::string major = GENERATE("11", "12", "13");
    Folder books;
    const std::string runtime = kFakeFolder + "/" + soname_of(major);
    const auto said = [&](const std::string& list) {
        const Outcome outcome =
            run({kGuests + "/guest_split_runtime" + major}, preloaded(preload_list() + ":" + list, books.path()));
        INFO(outcome.out << outcome.err);
        const Words lines = split_lines(outcome.err);
        return std::pair(
            lines_that_begin("count", split_lines(outcome.out)),
            std::count(lines.begin(), lines.end(),
                       "cuslice: the CUDA runtime in " + runtime +
                           " sees each split GPU as one, with the memory of its first partition: libcuslice-runtime.so "
                           "has to stand before it in LD_PRELOAD"));
    };
    CHECK(said(runtime + ":" + kShim) == std::pair(Words{"count 1"}, ptrdiff_t{1}));
    CHECK(said(kShim + ":" + runtime) == std::pair(Words{"count 3"}, ptrdiff_t{0}));
}

}  // namespace cuslice::tests
