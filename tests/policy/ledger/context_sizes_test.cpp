// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/context_sizes.h"

#include <mutex>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace cuslice::tests {

using namespace ledger;

TEST_CASE("of a kind of context the fewest bytes are kept") {
    Header header{};
    CHECK(least_context(header, 1) == 0);
    note_context(header, 1, 300);
    CHECK(least_context(header, 1) == 300);
    note_context(header, 1, 310);
    CHECK(least_context(header, 1) == 300);
    note_context(header, 1, 290);
    CHECK(least_context(header, 1) == 290);
    CHECK(least_context(header, 2) == 0);
}

TEST_CASE("of more kinds of contexts than there is room for, the latest are kept") {
    Header header{};
    for (uint64_t kind = 1; kind <= kContextKinds + 1; kind++)
        note_context(header, kind, 100 * kind);
    CHECK(least_context(header, 1) == 0);
    for (uint64_t kind = 2; kind <= kContextKinds + 1; kind++)
        CHECK(least_context(header, kind) == 100 * kind);
}

TEST_CASE("a kind whose size was never written is not known, and can be noted") {
    Header header{};
    header.contexts[0].kind.store(7);
    CHECK(least_context(header, 7) == 0);
    note_context(header, 7, 300);
    CHECK(least_context(header, 7) == 300);
}

TEST_CASE("while contexts are noted nobody reads another kind's size") {
    Header header{};
    std::mutex lock;
    std::vector<std::thread> threads;
    for (uint64_t kind = 1; kind <= 4; kind++)
        threads.emplace_back([&header, &lock, kind] {
            for (int i = 0; i < 10000; i++) {
                const std::lock_guard guard(lock);
                note_context(header, kind, kind);
            }
        });
    bool other = false;
    for (int i = 0; i < 10000; i++)
        for (uint64_t kind = 1; kind <= 4; kind++) {
            const uint64_t bytes = least_context(header, kind);
            other = other || (bytes != 0 && bytes != kind);
        }
    for (std::thread& thread : threads)
        thread.join();
    CHECK_FALSE(other);
}

}  // namespace cuslice::tests
