// SPDX-License-Identifier: Apache-2.0
// The order in which the loader looks for a library.
#include "virtual_gpu/driver/search_path.h"

#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/elf/made_up_cache.h"
#include "tests/skip.h"

namespace cuslice {
namespace {

namespace fs = std::filesystem;
using Tried = std::vector<std::string>;

// Everything that would be tried, "PATH (where)", but for subfolders of other levels than x86-64-v2, which every CPU of
// the last ten years has.
Tried tried(std::vector<std::string> folders, size_t defaults, const std::string& cache) {
    std::vector<Dl_serpath> list;
    for (std::string& folder : folders)
        list.push_back({folder.data(), 0});
    Tried all;
    visit_candidates(
        list, defaults, cache.c_str(), "lib.so",
        [](const char* path, const char* where, void* argument) {
            const std::string text = path;
            if (text.find("x86-64-v3") == text.npos && text.find("x86-64-v4") == text.npos)
                static_cast<Tried*>(argument)->push_back(text + " (" + where + ")");
            return false;
        },
        &all);
    return all;
}

// Candidates on this machine: without subfolders for CPUs where the C library has none, as on aarch64.
Tried as_here(Tried all) {
#if !defined(__x86_64__)
    std::erase_if(all, [](const std::string& path) { return path.find("/glibc-hwcaps/") != path.npos; });
#endif
    return all;
}

}  // namespace

TEST_CASE("the search path comes first, then the cache, and the default folders last") {
    const tests::Folder folder;
    const std::string cache = folder.write(
        "cache", tests::made_up_cache({{tests::kThisMachine, "lib.so", "/compat/lib.so"},
                                       {tests::kThisMachine, "lib.so", "/fast/glibc-hwcaps/x86-64-v2/lib.so"},
                                       {tests::kThisMachine, "lib.so", "/none/glibc-hwcaps/x86-64-v9/lib.so"},
                                       {tests::kThisMachine, "other.so", "/compat/other.so"}}));
    const std::string a = folder.path() + "/a", lib = folder.path() + "/lib", usr = folder.path() + "/usr";
    for (const std::string& there : {a, lib, usr})
        fs::create_directories(there + "/glibc-hwcaps");
    CHECK(tried({a, usr, lib, usr}, 2, cache) ==
          as_here(
              {a + "/glibc-hwcaps/x86-64-v2/lib.so (in the search path)", a + "/lib.so (in the search path)",
               usr + "/glibc-hwcaps/x86-64-v2/lib.so (in the search path)", usr + "/lib.so (in the search path)",
               "/fast/glibc-hwcaps/x86-64-v2/lib.so (in the loader's cache)", "/compat/lib.so (in the loader's cache)",
               lib + "/glibc-hwcaps/x86-64-v2/lib.so (in a default folder)", lib + "/lib.so (in a default folder)",
               usr + "/glibc-hwcaps/x86-64-v2/lib.so (in a default folder)", usr + "/lib.so (in a default folder)"}));
    CHECK(tried({a}, 4, "/nonexistent") ==
          as_here({a + "/glibc-hwcaps/x86-64-v2/lib.so (in a default folder)", a + "/lib.so (in a default folder)"}));
    CHECK(tried({}, 0, "/nonexistent").empty());
}

TEST_CASE("a folder without subfolders for CPUs is tried for itself alone") {
    CHECK(tried({"/nonexistent"}, 0, "/nonexistent") == Tried{"/nonexistent/lib.so (in the search path)"});
}

TEST_CASE("the CPU's level is the loader's own") {
#if !defined(__x86_64__)
    return tests::skip("only x86-64 has levels");
#endif
    const tests::Folder folder;
    fs::create_directories(folder.path() + "/glibc-hwcaps");
    std::string path = folder.path();
    const Dl_serpath list[] = {{path.data(), 0}};
    std::string levels;
    const auto visit = [](const char* tried, const char*, void* argument) {
        const std::string text = tried, level = "x86-64-";
        const auto at = text.find(level);
        if (at != text.npos)
            *static_cast<std::string*>(argument) += text.substr(at, level.size() + 2) + " ";
        return false;
    };
    visit_candidates(list, 0, "/nonexistent", "lib.so", visit, &levels);
    // "  x86-64-v3 (supported, searched)", from glibc 2.33 on.
    std::string loaders;
    std::istringstream help(tests::run({"/lib64/ld-linux-x86-64.so.2", "--help"}, {}).out);
    for (std::string line; std::getline(help, line);)
        if (line.rfind("  x86-64-v", 0) == 0 && line.find("supported") != line.npos)
            loaders += line.substr(2, 9) + " ";
    CAPTURE(levels);
    if (!loaders.empty())
        CHECK(levels == loaders);
}

TEST_CASE("the search ends with the first that is taken") {
    std::string folders[] = {"/a", "/b"};
    const Dl_serpath list[] = {{folders[0].data(), 0}, {folders[1].data(), 0}};
    int visits = 0;
    const auto second = [](const char*, const char*, void* argument) { return ++*static_cast<int*>(argument) == 2; };
    CHECK(visit_candidates(list, 0, "/nonexistent", "lib.so", second, &visits));
    CHECK(visits == 2);
}

}  // namespace cuslice
