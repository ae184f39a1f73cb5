// SPDX-License-Identifier: Apache-2.0
// A guest that sees one GPU as several.
#pragma once

#include <string>

#include "tests/catch.h"
#include "tests/preload/guest.h"

namespace cuslice::tests {

inline const std::string kGpu = "1xlaptop-2g";
inline constexpr uint64_t kPage = 2 * kMiB, kHeadroom = 16 * kMiB;

inline std::string text(uint64_t count) { return std::to_string(count); }

// A guest that sees a GPU as so many, or as it is.
struct Parts {
    explicit Parts(unsigned parts, const Words& more = {}, const Words& route = Guest::route("linked"))
        : guest(route, sliced(kGpu, books.path(), with(parts, more))), count(parts) {
        REQUIRE(guest.code("init") == kSuccess);
    }
    static Words with(unsigned parts, Words words) {
        words.push_back("CUSLICE_SPLIT=0=" + text(parts));
        words.push_back("CUSLICE_HEADROOM=" + text(kHeadroom / kMiB) + "MiB");
        return words;
    }
    Held held() { return books_of(books.path(), guest.pid()); }
    void retain_all() {
        for (unsigned i = 0; i < count; i++)
            REQUIRE(guest.code("retain " + text(i)) == kSuccess);
    }
    // Bytes charged to one partition. One of its contexts is the guest's current one afterwards.
    uint64_t used(unsigned part) {
        REQUIRE(guest.code("current " + text(part)) == kSuccess);
        return limit() - kHeadroom - guest.number("info");
    }
    uint64_t used_by_all() {
        uint64_t sum = 0;
        for (unsigned i = 0; i < count; i++)
            sum += used(i);
        return sum;
    }
    static uint64_t total() {
        static const uint64_t bytes = [] {
            const Folder books;
            Guest guest(Guest::route("linked"), raw(kGpu, books.path()));
            guest.code("init");
            return guest.number("total 0");
        }();
        return bytes;
    }
    uint64_t limit() const { return total() / count / kPage * kPage; }

    Folder books;
    Guest guest;
    unsigned count;
};

}  // namespace cuslice::tests
