// SPDX-License-Identifier: Apache-2.0
// Finding the real library of a name that is borrowed. LD_LIBRARY_PATH is read by the loader when a program starts, so
// each search is made by this program started anew.
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/loaded_object.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/child.h"

namespace cuslice {
namespace {

using tests::Folder;
using tests::Outcome;
namespace fs = std::filesystem;

// A name that no machine has a library of, but for where a test puts one.
const std::string kName = "libcuslice-decoy.so.9";

std::string put(const Folder& folder, const std::string& where, bool marked) {
    const fs::path to = fs::path(folder.path()) / where / kName;
    fs::create_directories(to.parent_path());
    fs::copy_file(marked ? CUSLICE_TEST_MARKED : CUSLICE_TEST_PLAIN, to);
    return to.string();
}

std::string search(const std::string& library_path, const std::string& explicit_path = "",
                   const std::string& name = kName, const std::vector<std::string>& opened = {}) {
    std::vector<std::string> words{CUSLICE_TEST_SEARCH, name, explicit_path};
    words.insert(words.end(), opened.begin(), opened.end());
    const Outcome outcome = tests::run(words, {"LD_LIBRARY_PATH=" + library_path, "ASAN_OPTIONS=detect_leaks=0"});
    CHECK(outcome.exit_code == 0);
    return outcome.out;
}

TEST_CASE("a library is found in the program's search path") {
    const Folder folder;
    const std::string path = put(folder, "a", false);
    CHECK(search(folder.path() + "/none:" + folder.path() + "/a") == path + "\n");
}

TEST_CASE("a copy of cuslice is passed over, wherever it stands in the path") {
    const Folder folder;
    put(folder, "ours", true);
    const std::string real = put(folder, "real", false);
    CHECK(search(folder.path() + "/ours:" + folder.path() + "/real") == real + "\n");
    CHECK(search(folder.path() + "/real:" + folder.path() + "/ours") == real + "\n");
    CHECK(search(folder.path() + "/ours") == "none: no " + kName + " in the loader's search path or cache\n");
}

TEST_CASE("a named path is the only place that is looked at") {
    const Folder folder;
    const std::string real = put(folder, "real", false), other = put(folder, "other", false),
                      ours = put(folder, "ours", true);
    CHECK(search(folder.path() + "/real", other) == other + "\n");
    const std::string missing = search(folder.path() + "/real", "/nonexistent/libcuda.so.1");
    CHECK(missing.rfind("none: /nonexistent/libcuda.so.1: cannot open shared object file", 0) == 0);
    CHECK(search(folder.path() + "/real", ours) == "none: it is cuslice itself\n");
}

TEST_CASE("what is no library is passed over too") {
    const Folder folder;
    folder.write("text/" + kName, "not a library");
    const std::string real = put(folder, "real", false);
    CHECK(search(folder.path() + "/text:" + folder.path() + "/real") == real + "\n");
}

TEST_CASE("what a program opened first is the real library, and what it failed to open is not remembered") {
    const Folder folder;
    const std::string first = put(folder, "first", false), second = put(folder, "second", false),
                      missing = folder.path() + "/missing/" + kName;
    folder.write("text/" + kName, "not a library");
    for (const std::string& name : {std::string("libcuda.so.1"), std::string("libnvidia-ml.so.1")}) {
        CAPTURE(name);
        const auto opening = [&](const std::vector<std::string>& opened) { return search("", "", name, opened); };
        CHECK(opening({first, second}) == first + "\n");
        CHECK(opening({missing, folder.path() + "/text/" + kName, second, first}) == second + "\n");
        CHECK(search("", first, name, {second}) == first + "\n");
        // By a name it is the one that the program's own path leads to.
        CHECK(search(folder.path() + "/second", "", name, {"no-such-" + kName, kName, first}) == second + "\n");
    }
    // A library is remembered only under a name that cuslice borrows.
    CHECK(search(folder.path() + "/first", "", kName, {second}) == first + "\n");
}

TEST_CASE("errno is kept, and a text that doesn't fit is cut") {
    char text[16];
    errno = 4711;
    CHECK(open_real_library("libcuslice-decoy.so.9", "/nonexistent/a-long-name.so", text, sizeof text) == nullptr);
    CHECK(errno == 4711);
    CHECK(std::strlen(text) == sizeof text - 1);
}

TEST_CASE("the folder of a module, and none for what is in no module") {
    char folder[4096];
    static const int here = 0;
    REQUIRE(folder_of(&here, folder, sizeof folder));
    CHECK(fs::is_directory(folder));
    int on_the_stack = 0;
    CHECK_FALSE(folder_of(&on_the_stack, folder, sizeof folder));
    CHECK_FALSE(folder_of(&here, folder, 2));
}

}  // namespace
}  // namespace cuslice
