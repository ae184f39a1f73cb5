// SPDX-License-Identifier: Apache-2.0
// A guest under a slice of one GPU, and a look at the GPU's books: what tests of counting begin with.
#pragma once

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"

namespace cuslice::tests {

inline std::string bytes(uint64_t count) { return std::to_string(count); }

/// One guest on one GPU, and a look at its books.
struct Scene {
    explicit Scene(const std::string& fake_gpu, const Words& settings, const std::string& limit = "1024MiB")
        : fake(fake_gpu), guest(Guest::route("linked"), sliced(fake, books.path(), with(settings, limit))) {
        REQUIRE(guest.code("init") == kSuccess);
    }
    /// A fixed headroom, so that free + used is the same number all the time.
    static Words with(Words settings, const std::string& limit) {
        settings.push_back("CUSLICE_LIMIT=" + limit);
        settings.push_back("CUSLICE_HEADROOM=16MiB");
        return settings;
    }
    Held held() { return books_of(books.path(), guest.pid()); }
    /// The limit less headroom less the count: so this is the count, seen from outside.
    uint64_t free() { return guest.number("info"); }
    /// Takes all that is left, which is not past the limit, and gives back all that has no name.
    void fill_and_free() {
        CHECK(guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
        CHECK(held().peak <= kGiB);
        CHECK(guest.code("freeall") == kSuccess);
    }

    Folder books;
    std::string fake;
    Guest guest;
};

/// A GPU as a file describes it.
inline std::string gpu_file(const Folder& folder, const std::string& keys) {
    return folder.write("gpus.toml", "[[gpu]]\nprofile = \"laptop-2g\"\n" + keys + "\n");
}

}  // namespace cuslice::tests
