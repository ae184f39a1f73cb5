// SPDX-License-Identifier: Apache-2.0
// Threads that meet in the contexts of partitions: each context stays its partition's, and each stack as its thread has
// left it.
#include <sched.h>

#include "tests/virtual_gpu/interleave/fork_in_run.h"
#include "tests/virtual_gpu/interleave/partitions.h"
#include "tests/virtual_gpu/split/made_up_split.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/primary_context.h"

namespace cuslice::tests {
namespace {

// A context ends while others ask for its partition, and work in one beside it and in another of its own partition.
struct EndsBesideQuestions : Partitions {
    Bodies bodies() {
        const CUcontext ends = create_aside(1), beside = create_aside(0);
        return {thread([this, ends] { expect(destroy(ends)); }), thread([this, ends, beside] {
                    expect(push(beside));
                    const int partition = partition_of(ends);
                    expect(partition == 1 || partition == -1);
                    expect_current(beside, 0);
                    expect(destroy(beside));
                }),
                thread([this] {
                    const CUcontext made = create(1);
                    const CUstream stream = make_stream();
                    expect(context_of(stream) == made);
                    expect_current(made, 1);
                    destroy_stream(stream);
                    expect(destroy(made));
                })};
    }
};

// Threads make the first contexts of a GPU, one on each partition and one by its primary context.
struct FirstContexts : Partitions {
    Bodies bodies() {
        const auto body = [this](int partition) {
            const CUcontext made = create(partition);
            expect_current(made, partition);
            expect(destroy(made));
        };
        return {thread([body] { body(0); }), thread([body] { body(1); }), thread([this] {
                    use(retain(0), 0);
                    release(0);
                })};
    }
};

// Primary contexts are retained and released beside the reset of one, while the other is used.
template <int kReset>
struct PrimaryBesideReset : Partitions {
    Bodies bodies() {
        const auto body = [this](int partition) {
            const CUcontext primary = retain(partition);
            if (partition != kReset)
                use(primary, partition);
            release(partition);
        };
        return {thread([body] { body(0); }), thread([body] { body(1); }), thread([this] { reset(kReset); })};
    }
};

// A context that is below the current one on a thread's stack, and then on top, ends in another thread.
struct StackBesideEnd : Partitions {
    Bodies bodies() {
        const CUcontext stays = create_aside(0), ends = create_aside(1);
        return {thread([this, stays, ends] {
                    expect(push(stays));
                    const bool pushed = push(ends);
                    const CUcontext top = pushed ? ends : stays;
                    expect_current(top, pushed ? 1 : 0);
                    expect(push(stays));
                    expect_current(stays, 0);
                    expect(pop() == stays);
                    expect(pop() == top);
                    if (pushed)
                        expect(pop() == stays);
                    expect(destroy(stays));
                }),
                thread([this, ends] { expect(destroy(ends)); }), thread([this] {
                    const CUcontext made = create(1);
                    expect_current(made, 1);
                    expect(pop() == made);
                    expect(destroy(made));
                })};
    }
};

// Threads attach to a context, and detach from it with its maker: it ends with the last use, once.
struct AttachedByTwo : Partitions {
    Bodies bodies() {
        const CUcontext shared = create_aside(1);
        stays = create_aside(0);
        const auto leave = [this, shared] {
            expect(partition_of(shared) == 1);
            expect(detach(shared));
            if (current())
                expect(pop() == shared);
        };
        const auto come_and_leave = [this, shared, leave] {
            expect(push(shared));
            expect(attach() == shared);
            expect_current(shared, 1);
            attached++;
            leave();
        };
        return {thread(come_and_leave), thread(come_and_leave), thread([this, shared, leave] {
                    while (attached < 2)
                        sched_yield();
                    expect(push(shared));
                    leave();
                })};
    }
    void check() {
        REQUIRE(destroy(stays));
        Partitions::check();
    }
    std::atomic<int> attached{0};
    CUcontext stays = nullptr;
};

// Contexts end with their streams, whose handles come again at once in another context, which stays.
struct StreamsComeAgain : Partitions {
    Bodies bodies() {
        const CUcontext ends = create(1);
        for (int i = 0; i < 2; i++)
            make_stream();
        expect(pop() == ends);
        stays = create_aside(0);
        return {thread([this, ends] { expect(destroy(ends)); }), thread([this] {
                    expect(push(stays));
                    for (int i = 0; i < 2; i++) {
                        const CUstream stream = make_stream();
                        expect(context_of(stream) == stays);
                        destroy_stream(stream);
                    }
                    expect(pop() == stays);
                }),
                thread([this] {
                    const CUcontext made = create(1);
                    const CUstream stream = make_stream();
                    expect(context_of(stream) == made);
                    expect(destroy(made));
                })};
    }
    void check() {
        REQUIRE(primaries.streams() == 0);
        REQUIRE(destroy(stays));
        Partitions::check();
    }
    CUcontext stays = nullptr;
};

// A thread looks for a partition's primary context while another gives it up.
struct LookedForAsItEnds : Partitions {
    Bodies bodies() {
        const CUcontext primary = retain(1), stays = create_aside(0);
        return {thread([this] { release(1); }), thread([this, primary] {
                    const CUcontext found = active_primary(1);
                    expect(!found || found == primary);
                }),
                thread([this, stays] { expect(destroy(stays)); })};
    }
};

// The GPUs are split while threads ask for them, which see all of the split or nothing.
struct Opened : Partitions {
    Opened() {
        the_split = {};
        split().set_installed();
    }
    Bodies bodies() {
        const auto body = [this] {
            const bool was_open = split().is_open();
            int count = 0;
            size_t bytes = 0;
            expect(CUSLICE_REAL(cuDeviceTotalMem_v2)(&bytes, 1) == CUDA_SUCCESS);
            expect(CUSLICE_REAL(cuDeviceGetCount)(&count) == CUDA_SUCCESS);
            // The driver's GPU 1, or partition 1 of GPU 0.
            const bool opens_later = count == MadeUpPrimaries::kGpus;
            expect(opens_later || count == kCount);
            expect(!was_open || bytes == kBytesOf[0]);
            expect(!opens_later || bytes == kBytesOf[1]);
            if (split().is_open())
                expect(split().count() == kCount && split().device(2)->physical == 1);
        };
        return {thread([] { split_gpus(); }), thread(body), thread([this, body] {
                    body();
                    const CUcontext made = split().is_open() ? create(1) : nullptr;
                    if (made)
                        expect_current(made, 1);
                    expect(!made || destroy(made));
                })};
    }
    static constexpr size_t kBytesOf[] = {1, 2};
};

// A thread forks while others make the first contexts of a split: the child can make and end one.
struct ForksBesideFirst : Partitions {
    Bodies bodies() {
        const auto body = [this](int partition) {
            const CUcontext made = create(partition);
            make_stream();
            expect_current(made, partition);
            expect(destroy(made));
        };
        const auto in_child = [this, body] {
            gpu_state().visits.forget_all();
            body(1);
            return good.load();
        };
        return {thread([this, in_child] { expect(fork_in_run(in_child)); }), thread([body] { body(0); }),
                thread([body] { body(1); })};
    }
};

}  // namespace

TEST_CASE("interleaved: a partition's context ends while others ask for its partition") {
    explore<EndsBesideQuestions>();
}
TEST_CASE("interleaved: the first contexts of a GPU's partitions are made at once") { explore<FirstContexts>(); }
TEST_CASE("interleaved: a partition's primary context is retained and released beside its reset") {
    explore<PrimaryBesideReset<0>>();
}
TEST_CASE("interleaved: the second partition's primary context is retained and released beside its reset") {
    explore<PrimaryBesideReset<1>>();
}
TEST_CASE("interleaved: a partition's context ends that another thread has on its stack") { explore<StackBesideEnd>(); }
TEST_CASE("interleaved: threads attach to a partition's context and detach from it") { explore<AttachedByTwo>(); }
TEST_CASE("interleaved: streams of a partition's context end, and their handles come again") {
    explore<StreamsComeAgain>();
}
TEST_CASE("interleaved: a partition's primary context is looked for as it is given up") {
    explore<LookedForAsItEnds>();
}
TEST_CASE("interleaved: GPUs are split while threads ask for them") { explore<Opened>(); }
TEST_CASE("interleaved: a thread forks while others make a split's first contexts") { explore<ForksBesideFirst>(); }

}  // namespace cuslice::tests
