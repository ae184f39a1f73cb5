// SPDX-License-Identifier: Apache-2.0
// Threads that meet where a partition's context ends with what was made in it: memory is freed once, and is charged
// until then.
#include <string>

#include "tests/virtual_gpu/interleave/partitions.h"
#include "virtual_gpu/split/virtual_context.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kMost = 30 * Partitions::kMiB;  // fits into a partition once

// A thread begins the next context of the first partition, as others end those that there are.
struct NextBegins : Partitions {
    CUcontext create_with_memory(int partition) {
        const CUcontext made = create(partition);
        allocate(kMost);
        expect(pop() == made);
        return made;
    }
    Schedule::Body begin_next() {
        return thread([this] { next = create_with_memory(0); });
    }
    // Nothing is left beside what the next one has.
    void check() {
        REQUIRE(driver.fault() == std::string());
        REQUIRE(driver.held() == charged());
        REQUIRE(destroy(next));
        Partitions::check();
    }
    CUcontext next = nullptr;
};

// The only two contexts of a GPU end at once.
struct LastTwoEnd : NextBegins {
    Bodies bodies() {
        const CUcontext first = create_with_memory(0), second = create_with_memory(1);
        return {thread([this, first] { expect(destroy(first)); }), thread([this, second] { expect(destroy(second)); }),
                begin_next()};
    }
};

// The same of a primary context that is released, and of one that is reset.
template <bool kReset>
struct PrimaryEndsBesideEnd : NextBegins {
    Bodies bodies() {
        const CUcontext ends = create_with_memory(1), primary = retain(0);
        expect(push(primary));
        allocate(kMost);
        expect(pop() == primary);
        return {thread([this, ends] { expect(destroy(ends)); }), thread([this] {
                    if (kReset)
                        reset(0);
                    release(0);
                }),
                begin_next()};
    }
};
struct ReleasedBesideEnd : PrimaryEndsBesideEnd<false> {};
struct ResetBesideEnd : PrimaryEndsBesideEnd<true> {};

// Contexts end, and the next ones begin, while both partitions' own pools are asked for memory.
struct DefaultPools : Partitions {
    Bodies bodies() {
        const auto body = [this](int partition) {
            for (int i = 0; i < 2; i++) {
                const CUcontext made = create(partition);
                CUdeviceptr address = 0;
                expect(CUSLICE_REAL(cuMemAllocAsync)(&address, kMost, nullptr) == CUDA_SUCCESS);
                expect(destroy(made));
            }
        };
        return {thread([body] { body(0); }), thread([body] { body(1); })};
    }
};

}  // namespace

TEST_CASE("interleaved: the last contexts of two partitions end at once, and another begins") { explore<LastTwoEnd>(); }
TEST_CASE("interleaved: a partition's primary context is released as another partition's context ends") {
    explore<ReleasedBesideEnd>();
}
TEST_CASE("interleaved: a partition's primary context is reset as another partition's context ends") {
    explore<ResetBesideEnd>();
}
TEST_CASE("interleaved: partitions' own pools are used as their contexts end and begin") { explore<DefaultPools>(); }

}  // namespace cuslice::tests
