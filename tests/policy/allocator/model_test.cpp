// SPDX-License-Identifier: Apache-2.0
// The caching allocator, made to do anything in any order by one thread or by many, in several contexts of two GPUs
// whose work is late, against a shadow that knows of each 512 bytes whose they are and what may still use them.
#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"
#include "tests/policy/allocator/model/program.h"
#include "tests/policy/rounds.h"

namespace cuslice::model {
namespace {

void run(uint64_t seed, unsigned threads, uint64_t steps) {
    CAPTURE(seed, threads, steps);
    Findings findings;
    const Plan plan = Plan::of(seed, threads, steps);
    Program program(plan, seed, shared_map(), findings);
    program.run();
    CAPTURE(findings.count());
    CHECK(findings.first() == "");
    CHECK(program.allocations() > threads * steps);
}

}  // namespace

TEST_CASE("one thread: no memory is two's, none is had while it may be used, and nothing is lost", "[slow][fuzz]") {
    const auto most = static_cast<uint64_t>(tests::rounds(20, 20'000));
    for (uint64_t seed = 1; seed <= most; seed++)
        run(seed, 1, 2000);
}

TEST_CASE("many threads: no memory is two's, none is had while it may be used, and nothing is lost", "[slow][fuzz]") {
    const auto most = static_cast<uint64_t>(tests::rounds(10, 6'000));
    constexpr unsigned kThreads[] = {2, 3, 8, 24};
    for (uint64_t seed = 1; seed <= most; seed++)
        run(seed, kThreads[seed % 4], 2000);
}

}  // namespace cuslice::model
