// SPDX-License-Identifier: Apache-2.0
// A heap by itself: it has no backing, and is told what the backing has done.
#include "policy/allocator/segment_heap.h"

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {
namespace {

using Next = SegmentHeap::Next;
using Added = SegmentHeap::Added;
using Request = SegmentHeap::Request;

struct Owner : BlockOwner {};

/// A heap that is open, at addresses of its own.
struct Heap {
    static constexpr uint64_t kFrom = 1ull << 44;
    Owner owner;
    Life life;
    SegmentHeap heap{owner, life};

    Heap() {
        heap.open(shared_map(), false);
        life.begin();
    }
    ~Heap() {
        LockGuard lock(heap.mutex());
        heap.close();
    }
    Added add(uint64_t bytes, uint64_t of_life, Request* request) {
        return heap.add({kFrom, bytes, kFrom, kFrom + bytes, false}, bytes, of_life, request);
    }
};

TEST_CASE(
    "who finds nothing free takes a segment, waits for one under way that has enough, or is told there is no room") {
    Heap h;
    Request first(4 * kKiB), second(4 * kKiB), large(4 * kMiB), huge(100 * kMiB), third(4 * kKiB);
    SegmentHeap::Taking taking, other, none;
    REQUIRE(h.heap.next(&first, {}, kGiB, &taking) == Next::take);
    CHECK(taking.bytes == 2 * kMiB);
    CHECK(taking.spare == 2 * kMiB - first.need);
    CHECK(h.heap.next(&second, {}, kGiB, &none) == Next::wait);
    CHECK(h.heap.next(&huge, {}, kGiB, &other) == Next::take);
    CHECK(other.bytes == 100 * kMiB);
    CHECK(h.heap.taking() == 2);
    CHECK(h.heap.next(&large, {}, 2 * kMiB, &none) == Next::nothing);
    CHECK(h.heap.taking() == 2);

    CHECK(h.add(taking.bytes, h.life.number(), &first) == Added::served);
    h.heap.end_taking(taking);
    h.heap.end_taking(other);
    CHECK(h.heap.taking() == 0);
    CHECK(first.got.address == Heap::kFrom);
    CHECK(h.heap.held() == 2 * kMiB);
    CHECK(h.heap.next(&third, {}, kGiB, &none) == Next::served);
}

TEST_CASE("a segment that was asked for in an earlier life is not taken, and one that is refused is still there") {
    Heap h;
    const uint64_t earlier = h.life.number();
    h.life.end();
    h.life.begin();
    CHECK(h.add(2 * kMiB, earlier, nullptr) == Added::no);
    CHECK(h.heap.held() == 0);
    REQUIRE(h.add(2 * kMiB, h.life.number(), nullptr) == Added::yes);

    const SegmentHeap::Detached idle = h.heap.detach_idle(1, ~0ull, false);
    REQUIRE(idle.segment);
    CHECK(h.heap.held() == 0);
    CHECK(shared_map().segment(Heap::kFrom) == nullptr);
    Request request(kMiB);
    CHECK_FALSE(h.heap.take(&request, SegmentHeap::Place::any));
    CHECK(h.heap.end_detached(idle, false) == 0);
    CHECK(h.heap.held() == 2 * kMiB);
    CHECK(h.heap.take(&request, SegmentHeap::Place::any));
    CHECK_FALSE(h.heap.detach_idle(1, ~0ull, false).segment);
}

}  // namespace
}  // namespace cuslice
