// SPDX-License-Identifier: Apache-2.0
// Memory that allocators like TensorFlow's and JAX's get from a slice: guest/frameworks.cpp asks as they do.
// scripts/compat.sh asks TensorFlow and JAX themselves.
#include "tests/preload/machine.h"

namespace cuslice::tests {
namespace {

// Upper bound of what a slice costs a framework beside its context: headroom, and memory that is left to libraries.
constexpr uint64_t kMostLost = 300 * kMiB;

struct Got {
    uint64_t context = 0, bound = 0, pool = 0, held = 0;
};

// One framework in a slice of its own. `how`: a command of guest/frameworks.cpp.
Got ask(const Machine& machine, const Words& options, const std::string& how, const Words& more = {}) {
    const auto guest = machine.start(options, more, {CUSLICE_TEST_GUESTS "/guest_frameworks"});
    REQUIRE(guest->code("open 0") == kSuccess);
    Got got;
    got.context = machine.held(*guest, 0).used;
    const Words answer = split_words(guest->ask(how + " 0"));
    got.bound = std::stoull(answer.at(1));
    got.pool = std::stoull(answer.at(2));
    got.held = machine.held(*guest, 0).used;
    return got;
}

Words limit(uint64_t mib) { return {"--limit", std::to_string(mib) + "MiB"}; }

// Limits from 700 MiB to 24 GiB. TensorFlow's own rule has a step at 2 GiB of free memory.
constexpr unsigned kLimits[] = {700, 1024, 2048, 2100, 2640, 2690, 4096, 8192, 16384, 24576};

void never_falls(const std::string& profile, const std::string& how) {
    const Machine machine("1x" + profile);
    uint64_t before = 0;
    for (const unsigned mib : kLimits) {
        if (profile == "laptop-2g" && mib > 2002)
            break;
        if (profile == "t4" && mib > 15109)
            break;
        const Got got = ask(machine, limit(mib), how);
        INFO(profile << " " << mib << " MiB, " << how << ": " << got.pool / kMiB << " MiB got, " << got.held / kMiB
                     << " held, context " << got.context / kMiB);
        CHECK(got.pool >= before);
        CHECK(got.pool + got.context + kMostLost >= mib * kMiB);
        CHECK(got.held <= mib * kMiB);
        before = got.pool;
    }
}

}  // namespace

TEST_CASE("what a pool like TensorFlow's gets never falls when the limit rises") {
    for (const char* profile : {"laptop-2g", "t4", "a100-40g", "h200"})
        never_falls(profile, "tensorflow");
}

TEST_CASE("what a pool like JAX's gets never falls when the limit rises") {
    for (const char* profile : {"laptop-2g", "t4", "h200"})
        never_falls(profile, "jax");
}

TEST_CASE("memory pools and mapped memory fill a slice") {
    for (const char* profile : {"t4", "h200"})
        for (const char* how : {"pool", "mapped"})
            never_falls(profile, how);
}

TEST_CASE("left to itself, a pool like TensorFlow's gets less of a larger limit") {
    const Machine machine("1xh200");
    const auto alone = [&](unsigned mib) {
        return ask(machine, joined(limit(mib), {"--no-framework-env"}), "tensorflow").pool;
    };
    CHECK(alone(2690) < alone(2640));
    // Its own variable is left as it is, and so is JAX's.
    CHECK(ask(machine, limit(4096), "tensorflow", {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB=1800"}).pool <
          ask(machine, limit(4096), "tensorflow").pool);
    CHECK(ask(machine, limit(4096), "jax", {"XLA_PYTHON_CLIENT_MEM_FRACTION=.5"}).pool == 2048 * kMiB);
}

TEST_CASE("a pool like TensorFlow's that grows ends where the other does") {
    const Machine machine("1xh200");
    for (const unsigned mib : {1024U, 4096U}) {
        const Got whole = ask(machine, limit(mib), "tensorflow");
        const Got grown = ask(machine, joined(limit(mib), {"--allocator", "growth"}), "tensorflow");
        INFO(mib << " MiB: " << whole.pool / kMiB << " at once, " << grown.pool / kMiB << " by growth");
        CHECK(grown.pool + 2 * kMiB >= whole.pool);
        CHECK(grown.held <= mib * kMiB);
    }
}

TEST_CASE("each part of a split gives a pool like TensorFlow's its share") {
    const Machine machine("1xh200");
    const auto guest =
        machine.start({"--limit", "24GiB", "--split", "0=8"}, {}, {CUSLICE_TEST_GUESTS "/guest_frameworks"});
    for (int part = 0; part < 8; ++part)
        REQUIRE(guest->code("open " + std::to_string(part)) == kSuccess);
    const uint64_t context = machine.held(*guest, 0).used;
    uint64_t sum = 0;
    for (int part = 0; part < 8; ++part) {
        REQUIRE(guest->code("open " + std::to_string(part)) == kSuccess);
        const uint64_t pool = guest->number("tensorflow " + std::to_string(part), 2);
        INFO("part " << part << ": " << pool / kMiB << " MiB");
        CHECK(pool + context + kMostLost >= 3072 * kMiB);
        sum += pool;
    }
    CHECK(sum + context + 8 * kMostLost >= 24 * kGiB);
    CHECK(machine.held(*guest, 0).used <= 24 * kGiB);
}

}  // namespace cuslice::tests
