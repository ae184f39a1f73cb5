// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/graph_needs.h"

#include <map>
#include <random>

#include "tests/catch.h"

using namespace cuslice;

namespace {

CUgraphExec handle(uintptr_t number) { return reinterpret_cast<CUgraphExec>(number * 16); }

}  // namespace

TEST_CASE("what an instance needs on each GPU is there until it ends, whatever comes and goes beside it") {
    GraphNeeds needs;
    CHECK(needs.empty());
    std::map<uintptr_t, GraphNeeds::Bytes> model;
    std::mt19937_64 random(3);
    for (int i = 0; i < 2000; i++) {
        const uintptr_t number = random() % 50 + 1;
        if (random() % 3 == 0) {
            needs.ended(handle(number));
            model.erase(number);
        } else {
            GraphNeeds::Bytes bytes;
            bytes.any = true;
            for (int n = 0; n < 3; n++)
                bytes.on[random() % GraphNeeds::kMaxGpus] = random() % 1000 + 1;
            REQUIRE(needs.instantiated(handle(number), bytes));  // a handle can come back without an end
            model[number] = bytes;
        }
        CHECK(needs.empty() == model.empty());
        const uintptr_t other = random() % 50 + 1;
        const GraphNeeds::Bytes found = needs.of(handle(other));
        REQUIRE(found.any == (model.count(other) == 1));
        for (int gpu = 0; gpu < GraphNeeds::kMaxGpus; gpu++)
            REQUIRE(found.on[gpu] == (found.any ? model[other].on[gpu] : 0));
    }
}
