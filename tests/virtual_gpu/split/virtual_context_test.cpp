// SPDX-License-Identifier: Apache-2.0
// Contexts of two parts of one GPU, and of a GPU beside it.
#include "virtual_gpu/split/virtual_context.h"

#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/virtual_gpu/split/made_up_split.h"
#include "virtual_gpu/split/split.h"

using namespace cuslice;

namespace {

CUcontext real(uintptr_t number) { return reinterpret_cast<CUcontext>(number << 4); }

VirtualContexts& contexts() {
    tests::split_gpus();
    return virtual_contexts();
}

}  // namespace

TEST_CASE("a virtual context means its real one as long as it is used, and nothing afterwards") {
    VirtualContext* const one = contexts().create(1, real(5), 3);
    REQUIRE(one);
    CHECK_FALSE(one->primary());
    CHECK(one->flags == 3u);
    const CUcontext handle = one->handle();
    CHECK(handle != real(5));
    CHECK(contexts().resolve(handle).context == one);
    CHECK(contexts().resolve(handle).real == real(5));
    CHECK(contexts().numbered(one->number) == one);
    contexts().use(*one);
    CHECK(contexts().give_up(*one));
    CHECK_FALSE(contexts().give_up(*one));  // the last use
    CHECK(contexts().resolve(handle).real == real(5));
    const uint64_t number = one->number;
    contexts().end(*one);
    CHECK(contexts().resolve(handle).context == one);
    CHECK(contexts().resolve(handle).real == nullptr);
    CHECK(contexts().find(handle) == one);
    CHECK(contexts().numbered(number) == nullptr);
}

TEST_CASE("handles of virtual contexts are not used again at once, and numbers never") {
    std::set<CUcontext> handles;
    std::set<uint64_t> numbers;
    for (int i = 0; i < 100; i++) {
        VirtualContext* const one = contexts().create(0, real(5), 0);
        REQUIRE(one);
        CHECK(handles.insert(one->handle()).second);
        CHECK(numbers.insert(one->number).second);
        contexts().end(*one);
    }
}

TEST_CASE("where there are too many virtual contexts there is no more, until one has ended") {
    std::vector<VirtualContext*> all;
    while (VirtualContext* one = contexts().create(2, real(6), 0))
        all.push_back(one);
    CHECK(all.size() == 4096 - 64);
    CHECK(contexts().create(2, real(6), 0) == nullptr);
    contexts().end(*all[17]);
    CHECK(contexts().create(2, real(6), 0) == all[17]);
    for (VirtualContext* one : all)
        contexts().end(*one);
}

TEST_CASE("the first part's primary context has the real one's handle, another part's its own") {
    VirtualContext &first = contexts().primary(0), &second = contexts().primary(1);
    second.device = 1;
    first.preset = 4;
    contexts().begin(first, real(9));
    contexts().begin(second, real(9));
    contexts().use_at_least_once(first);
    contexts().use_at_least_once(first);
    CHECK(first.uses == 1u);
    CHECK(first.flags == 4u);
    CHECK(first.primary());
    CHECK(first.handle() == real(9));
    CHECK(second.handle() != real(9));
    CHECK(contexts().resolve(real(9)).context == &first);
    CHECK(contexts().resolve(second.handle()).context == &second);
    CHECK(contexts().resolve(second.handle()).real == real(9));
    // A reset: the handle means nothing of ours, and the use is there yet.
    contexts().interrupt(first);
    CHECK(first.ended == VirtualContext::Ended::by_program);
    contexts().expect_use(first);
    CHECK(first.ended == VirtualContext::Ended::by_runtime);
    CHECK(contexts().resolve(real(9)).context == nullptr);
    CHECK(contexts().resolve(real(9)).real == real(9));
    CHECK(first.uses == 1u);
    contexts().end(first);
    CHECK(first.uses == 0u);
    contexts().end(second);
}

TEST_CASE("a handle that is none of ours stays what it is, and one within ours that is none means nothing") {
    VirtualContext* const one = contexts().create(1, real(5), 0);
    REQUIRE(one);
    CHECK(contexts().resolve(real(77)).context == nullptr);
    CHECK(contexts().resolve(real(77)).real == real(77));
    CHECK(contexts().find(nullptr) == nullptr);
    const auto inside = reinterpret_cast<CUcontext>(reinterpret_cast<uintptr_t>(one) + 8);
    CHECK(contexts().find(inside) == nullptr);
    CHECK(contexts().resolve(inside).real == nullptr);
    contexts().end(*one);
}

TEST_CASE("only contexts of the same physical GPU keep each other company") {
    VirtualContext* const one = contexts().create(0, real(5), 0);
    REQUIRE(one);
    CHECK_FALSE(contexts().has_company(*one));
    VirtualContext* const apart = contexts().create(2, real(6), 0);
    CHECK_FALSE(contexts().has_company(*one));
    VirtualContext* const beside = contexts().create(1, real(5), 0);
    CHECK(contexts().has_company(*one));
    contexts().end(*beside);
    CHECK_FALSE(contexts().has_company(*one));
    contexts().end(*one);
    contexts().end(*apart);
}

TEST_CASE("parts of one GPU are siblings, and the first of them stands for it") {
    contexts();
    CHECK(split().siblings(0, 1));
    CHECK(split().siblings(2, 2));
    CHECK_FALSE(split().siblings(1, 2));
    CHECK_FALSE(split().siblings(0, 3));
    CHECK_FALSE(split().siblings(-1, 0));
    CHECK(split().first_of(0) == 0);
    CHECK(split().first_of(1) == 2);
    CHECK(split().first_of(7) == -1);
    CHECK(split().device(3) == nullptr);
    CHECK(split().device(-1) == nullptr);
}
