// SPDX-License-Identifier: Apache-2.0
// The file of the loader's cache: one that is missing, and one that somebody cuts short. tests/elf has what is in it.
#include "virtual_gpu/driver/loader_cache.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/elf/made_up_cache.h"

namespace cuslice {
namespace {

using Paths = std::vector<std::string>;

const std::vector<tests::CacheRow> kRows{{tests::kThisMachine, "libcuda.so.1", "/a/libcuda.so.1"},
                                         {tests::kThisMachine, "libcuda.so.1", "/b/libcuda.so.1"}};

Paths find(const LoaderCache& cache) {
    Paths found;
    CHECK_FALSE(cache.any("libcuda.so.1", [&](const char* path) {
        found.emplace_back(path);
        return false;
    }));
    return found;
}

TEST_CASE("a visit that returns true is the last") {
    const tests::Folder folder;
    const LoaderCache cache(folder.write("cache", tests::made_up_cache(kRows)).c_str());
    int visits = 0;
    CHECK(cache.any("libcuda.so.1", [&](const char*) { return ++visits == 1; }));
    CHECK(visits == 1);
    CHECK(find(cache) == Paths{"/a/libcuda.so.1", "/b/libcuda.so.1"});
}

TEST_CASE("a cache that is missing, empty or a folder has no entries") {
    const tests::Folder folder;
    CHECK(find(LoaderCache("/nonexistent/ld.so.cache")).empty());
    CHECK(find(LoaderCache(folder.write("cache", "").c_str())).empty());
    CHECK(find(LoaderCache(folder.path().c_str())).empty());
}

TEST_CASE("a cache that is cut short while it is in use does no harm") {
    const tests::Folder folder;
    const std::string path = folder.write("cache", tests::made_up_cache(kRows));
    const LoaderCache cache(path.c_str());
    REQUIRE(truncate(path.c_str(), 0) == 0);
    CHECK(find(cache) == Paths{"/a/libcuda.so.1", "/b/libcuda.so.1"});
}

}  // namespace
}  // namespace cuslice
