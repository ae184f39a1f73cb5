// SPDX-License-Identifier: Apache-2.0
// Threads that meet where a context ends: nobody asks the driver about one that has ended, and all that it had is given
// back once.
#include <sched.h>

#include "tests/virtual_gpu/interleave/fork_in_run.h"
#include "tests/virtual_gpu/interleave/scene.h"
#include "virtual_gpu/gpu/visit.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kSmall = 4096;

// A context whose cache holds memory that nobody uses ends, while another one needs it.
struct EndsBesideTrim : TwoContexts {
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        free(allocate(cache_of(other), 20 * kMiB));
        return {thread(one,
                       [this, &cache] {
                           if (const uint64_t block = allocate(cache, 40 * kMiB))
                               free(block);
                       }),
                thread(other, [this] { end(other); })};
    }
};

// The same while the other context frees what work of both can touch.
template <FreeMode kMode>
struct EndsBesideFree : TwoContexts {
    EndsBesideFree() : TwoContexts(kMode) {}
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        const uint64_t block = allocate(cache, kMiB), left = allocate(cache_of(other), kMiB);
        return {thread(one,
                       [this, &cache, block] {
                           use_and_free(one, block, kMiB);
                           free(allocate(cache, kMiB));
                           caches.trim(gpu, ~0ull);
                       }),
                thread(other, [this, left] {
                    driver.launch(other, left, kMiB);
                    end(other);
                })};
    }
};
struct EndsBesideStrictFree : EndsBesideFree<FreeMode::strict> {};
struct EndsBesideDeferredFree : EndsBesideFree<FreeMode::deferred> {};

// A context ends while another one, then the only one that is left, asks for a point in the work of both.
struct EndsBesidePoint : TwoContexts {
    Bodies bodies() {
        const CUcontext both[] = {one, other};
        const Fence point = caches.fences().make(both, 2);
        return {thread(one, [this, point] { expect(point && caches.fences().passed(point, true)); }),
                thread(other, [this] { end(other); })};
    }
};

struct BeginsAgain : TwoContexts {
    // With the handle, the number and the cache of the one that has ended, and a block.
    void begin_again() {
        const Contexts::Id id = begin(other);
        MadeUpGpu::set_current(other);
        // None where threads that end visit all caches that there are, and there can't be more.
        ContextAllocator* const next = caches.of(gpu, id);
        const uint64_t block = next ? allocate(*next, kMiB) : 0;
        if (block)
            free(block);
    }
};

// A context ends, and the next one has its handle, its number and its cache, while others give back what is idle.
struct HandleComesAgain : BeginsAgain {
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        const uint64_t block = allocate(cache, kMiB);
        free(allocate(cache_of(other), kMiB));
        return {thread(other,
                       [this] {
                           end(other);
                           begin_again();
                       }),
                thread(one,
                       [this, block] {
                           caches.trim(gpu, ~0ull);
                           use_and_free(one, block, kMiB);
                       }),
                thread(one, [this] { caches.trim(gpu, ~0ull); })};
    }
};

// Two threads ask for the first block of a context, while another context ends with its cache.
struct FirstBlock : TwoContexts {
    Bodies bodies() {
        const uint64_t left = allocate(cache_of(other), kMiB);
        const auto body = [this](ContextAllocator*& cache) {
            cache = &cache_of(one);
            const uint64_t block = allocate(*cache, kSmall);
            expect(block != 0);
            use_and_free(one, block, kSmall);
        };
        return {thread(one, [this, body] { body(first); }), thread(one, [this, body] { body(second); }),
                thread(other, [this, left] {
                    driver.launch(other, left, kMiB);
                    end(other);
                })};
    }
    void check() {
        REQUIRE(first == second);
        Scene::check();
    }
    ContextAllocator *first = nullptr, *second = nullptr;
};

// A thread ends with what it keeps of a context, which another thread ends, and the next one has its cache.
struct ThreadEnds : BeginsAgain {
    Bodies bodies() {
        ContextAllocator& cache = cache_of(other);
        return {thread(other,
                       [this, &cache] {
                           for (const uint64_t bytes : {kSmall, kMiB, kMiB})
                               use_and_free(other, allocate(cache, bytes), bytes);
                           through = true;
                       }),
                thread(one,
                       [this] {
                           while (!through)
                               sched_yield();
                           end(other);
                           begin_again();
                       }),
                thread(one, [this] { caches.trim(gpu, ~0ull); })};
    }
    std::atomic<bool> through{false};
};

// Figures of all caches while one of them is closed: what was allocated has been, and nothing is counted twice.
struct EndsBesideFigures : TwoContexts {
    Bodies bodies() {
        allocate(cache_of(other), 4 * kMiB);
        ContextAllocator& cache = cache_of(one);
        const Statistics before = caches.statistics(gpu);
        return {thread(other, [this] { end(other); }),
                thread(one,
                       [this, before] {
                           unsigned open = 0;
                           const Statistics seen = caches.statistics(gpu, &open);
                           expect(open <= 2 && seen.allocated.current <= 5 * kMiB);
                           expect(seen.allocated.allocated <= before.allocated.allocated + kMiB);
                           expect(caches.unused(gpu) <= kRoom);
                       }),
                thread(one, [this, &cache] { free(allocate(cache, kMiB)); })};
    }
};

// Two contexts at the limit: each needs what the other one keeps.
struct TwoAtTheLimit : TwoContexts {
    Bodies bodies() {
        const auto body = [this](ContextAllocator& cache) {
            for (int i = 0; i < 2; i++)
                if (const uint64_t block = allocate(cache, 30 * kMiB))
                    free(block);
        };
        ContextAllocator &first = cache_of(one), &second = cache_of(other);
        return {thread(one, [body, &first] { body(first); }), thread(other, [body, &second] { body(second); })};
    }
};

// Threads that visit a context while others end it, or don't after all.
struct Visited : TwoContexts {
    Bodies bodies() {
        return {thread(one,
                       [this] {
                           for (int i = 0; i < 2; i++) {
                               const Visit visit(other, i == 1);
                               expect(visit && ++inside > 0);
                               expect(!ending);
                               inside--;
                           }
                       }),
                thread(one, [this] { end_it(); }), thread(one, [this] { end_it(); })};
    }
    void end_it() {
        const ContextEnd ending_here(other);
        expect(!ending.exchange(true) && inside == 0);
        const Visit own(other);
        expect(!own);
        ending = false;
    }
    std::atomic<int> inside{0};
    std::atomic<bool> ending{false};
};

// A thread forks while others allocate, capture, and end a context: no lock is anybody's in the child, where all can be
// asked.
struct Forks : TwoContexts {
    Forks() { driver.make_stream(stream(1), one); }
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        const uint64_t block = allocate(cache, kMiB);
        free(allocate(cache_of(other), kMiB));
        return {thread(one, [this] { expect(fork_in_run([this] { return be_child(); })); }),
                thread(one,
                       [this, block] {
                           use_and_free(one, block, kMiB);
                           begin_capture(stream(1));
                           end_capture(stream(1));
                           caches.trim(gpu, ~0ull);
                       }),
                thread(other, [this] { end(other); })};
    }
    bool be_child() {
        ContextAllocator::forget_thread();
        caches.forget();
        gpu_state().visits.forget_all();
        gpu.pools().forget();
        const ContextEnd ending(one);
        CUcontext left[2] = {};
        const bool counted = gpu_state().contexts.list(left, 2) <= 2 && caches.unused(gpu) <= kRoom;
        gpu.refresh();
        caches.captures().moment();
        return counted && caches.statistics(gpu).reserved.current <= kRoom;
    }
};

}  // namespace

TEST_CASE("interleaved: a context ends while another needs what its cache keeps") { explore<EndsBesideTrim>(); }
TEST_CASE("interleaved: a context ends beside a free that waits for its work") { explore<EndsBesideStrictFree>(); }
TEST_CASE("interleaved: a context ends beside a deferred free that asks for its work") {
    explore<EndsBesideDeferredFree>();
}
TEST_CASE("interleaved: a context ends while another asks for a point in the work of both") {
    explore<EndsBesidePoint>();
}
TEST_CASE("interleaved: a context's handle, number and cache come again beside others that trim") {
    explore<HandleComesAgain>();
}
TEST_CASE("interleaved: two threads ask for a context's first block while another context ends") {
    explore<FirstBlock>();
}
TEST_CASE("interleaved: a thread ends with what it keeps while the context ends") { explore<ThreadEnds>(); }
TEST_CASE("interleaved: a context ends while others read figures and allocate") { explore<EndsBesideFigures>(); }
TEST_CASE("interleaved: two contexts at the limit need what the other one keeps") { explore<TwoAtTheLimit>(); }
TEST_CASE("interleaved: visitors of a context and threads that end it keep out of each other's way") {
    explore<Visited>();
}
TEST_CASE("interleaved: a thread forks while others allocate, capture and end a context") { explore<Forks>(); }

}  // namespace cuslice::tests
