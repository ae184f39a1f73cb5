// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual_gpu/interleave/partitions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/virtual_gpu/interleave/charged_memory.h"
#include "tests/virtual_gpu/interleave/scene.h"
#include "tests/virtual_gpu/split/made_up_split.h"
#include "virtual_gpu/gpu/primary_context.h"
#include "virtual_gpu/gpu/visit.h"
#include "virtual_gpu/split/context_lifetime.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice::tests {

namespace {

constexpr CUdevice kPhysical[Partitions::kCount] = {0, 0, 1};

Slice slice_of_partition() {
    Slice made;
    made.limited = made.own_headroom = true;
    made.limit = Partitions::kLimit;
    return made;
}

/// Stays for all runs, as gpu_state() does.
struct Gpus {
    PhysicalGpu physical[MadeUpPrimaries::kGpus];
    VirtualGpu all[Partitions::kCount];

    static Gpus& get() {
        static Gpus& gpus = *new Gpus;
        return gpus;
    }

  private:
    Gpus() {
        Process::get();  // which names what GPUs ask of a process
        for (PhysicalGpu& one : physical)
            one.open({}, Partitions::kCount * Partitions::kLimit);
        physical[0].split(Slice{}, 2 * Partitions::kLimit, false);
        for (int i = 0; i < Partitions::kCount; i++)
            all[i].open(i, {}, physical[kPhysical[i]], "partition", slice_of_partition());
    }
};

VirtualGpu& gpu(int partition) { return Gpus::get().all[partition]; }

/// A context's allocations, which are nobody's any more while it ends (shim/process/ending_context.h).
class Ending {
  public:
    Ending(MadeUpGpu& driver, int partition, CUcontext context) : gpu_(gpu(partition)), context_(context) {
        gpu_.budget().begin_release();
        gpu_state().allocations.erase_context(gpu_state().contexts.known_id(context), take, this);
        for (const Allocation& one : allocations_)
            driver.take_back(one.address);
    }
    void ended() {
        free_left_memory();
        uint64_t bytes = 0;
        for (const Allocation& one : allocations_)
            bytes += one.bytes;
        gpu_.budget().end_release(bytes);
        gpu_state().contexts.ended(context_);
        gpu_.context_gone();
    }
    void lives_on() {
        for (const Allocation& one : allocations_)
            gpu_state().allocations.insert(one);
        gpu_.budget().cancel_release();
    }

  private:
    static void take(const Allocation& allocation, void* self) {
        static_cast<Ending*>(self)->allocations_.push_back(allocation);
    }
    void free_left_memory() {
        const LeftMemory left;
        if (!left)
            return;
        for (const Allocation& one : allocations_)
            CUSLICE_PHYSICAL(cuMemFree_v2)(one.address);
    }

    VirtualGpu& gpu_;
    const CUcontext context_;
    std::vector<Allocation> allocations_;
};

}  // namespace

Partitions::Partitions() : driver(2 * kLimit, MadeUpGpu::Modes::some) {
    Gpus::get();
    install_split();
    split_gpus();
    for (int i = 0; i < kCount; i++)
        virtual_contexts().primary(i).ended = VirtualContext::Ended::never;
}

Partitions::~Partitions() {
    the_split = {};
    std::ranges::fill(split_from_slots, nullptr);
}

Schedule::Body Partitions::thread(std::function<void()> body) {
    return [this, body = std::move(body)] {
        body();
        expect(!current());
    };
}

CUcontext Partitions::create(int partition) {
    CUcontext made = nullptr;
    expect(CUSLICE_REAL(cuCtxCreate_v2)(&made, 0, partition) == CUDA_SUCCESS);
    gpu_state().contexts.id_of(made, partition);
    return made;
}

CUcontext Partitions::create_aside(int partition) {
    const CUcontext made = create(partition);
    expect(pop() == made);
    return made;
}

bool Partitions::destroy(CUcontext context) {
    return end(context, [](CUcontext one) { return CUSLICE_REAL(cuCtxDestroy_v2)(one); });
}

CUcontext Partitions::attach() {
    CUcontext attached = nullptr;
    expect(CUSLICE_REAL(cuCtxAttach)(&attached, 0) == CUDA_SUCCESS);
    gpu_state().contexts.attached(attached);
    return attached;
}

bool Partitions::detach(CUcontext context) {
    {
        const Visit no_end(context);
        if (gpu_state().contexts.give_up_use(context))
            return CUSLICE_REAL(cuCtxDetach)(context) == CUDA_SUCCESS;
    }
    return end(context, [](CUcontext one) { return CUSLICE_REAL(cuCtxDetach)(one); });
}

bool Partitions::end(CUcontext context, EndOfContext call) {
    const int partition = gpu_state().contexts.device_of(context);
    if (partition < 0)
        return false;
    const ContextEnd no_visit(context);
    Ending ending(driver, partition, context);
    const bool ended = call(context) == CUDA_SUCCESS;
    ended ? ending.ended() : ending.lives_on();
    return ended;
}

CUcontext Partitions::retain(int partition) {
    CUcontext retained = nullptr;
    PrimaryContext& primary = gpu(partition).primary();
    {
        const Visit no_end(&primary);
        expect(CUSLICE_REAL(cuDevicePrimaryCtxRetain)(&retained, partition) == CUDA_SUCCESS);
    }
    primary.is(retained);
    gpu_state().contexts.id_of(retained, partition);
    return retained;
}

void Partitions::release(int partition) {
    PrimaryContext& primary = gpu(partition).primary();
    const CUcontext context = primary.handle.load();
    const ContextEnd end(context), no_retain(&primary);
    expect(CUSLICE_REAL(cuDevicePrimaryCtxRelease_v2)(partition) == CUDA_SUCCESS);
    if (!primary_is_active(partition))
        Ending(driver, partition, context).ended();
}

void Partitions::reset(int partition) {
    PrimaryContext& primary = gpu(partition).primary();
    const CUcontext context = primary.handle.load();
    const ContextEnd end(context), no_retain(&primary);
    Ending ending(driver, partition, context);
    expect(CUSLICE_REAL(cuDevicePrimaryCtxReset_v2)(partition) == CUDA_SUCCESS);
    ending.ended();
}

uint64_t Partitions::allocate(uint64_t bytes) { return allocate_charged(gpu(current_partition()), driver, bytes); }

void Partitions::free(uint64_t address) { expect(free_charged(gpu(current_partition()), driver, address)); }

bool Partitions::push(CUcontext context) { return CUSLICE_REAL(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS; }

CUcontext Partitions::pop() {
    CUcontext popped = nullptr;
    CUSLICE_REAL(cuCtxPopCurrent_v2)(&popped);
    return popped;
}

CUcontext Partitions::current() {
    CUcontext now = nullptr;
    CUSLICE_REAL(cuCtxGetCurrent)(&now);
    return now;
}

int Partitions::partition_of(CUcontext context) {
    CUdevice partition = -1;
    return CUSLICE_REAL(cuCtxGetDevice_v2)(&partition, context) == CUDA_SUCCESS ? partition : -1;
}

int Partitions::current_partition() {
    CUdevice partition = -1;
    return CUSLICE_REAL(cuCtxGetDevice)(&partition) == CUDA_SUCCESS ? partition : -1;
}

CUstream Partitions::make_stream() {
    CUstream made = nullptr;
    expect(CUSLICE_REAL(cuStreamCreate)(&made, 0) == CUDA_SUCCESS);
    return made;
}

void Partitions::destroy_stream(CUstream stream) { expect(CUSLICE_REAL(cuStreamDestroy_v2)(stream) == CUDA_SUCCESS); }

CUcontext Partitions::context_of(CUstream stream) {
    CUcontext context = nullptr;
    CUSLICE_REAL(cuStreamGetCtx)(stream, &context);
    return context;
}

uint64_t Partitions::charged() {
    uint64_t bytes = 0;
    for (int i = 0; i < kCount; i++)
        bytes += gpu(i).budget().used();
    return bytes;
}

void Partitions::check() {
    REQUIRE(driver.fault() == std::string());
    REQUIRE(good);
    for (int i = 0; i < kCount; i++) {
        REQUIRE(gpu(i).budget().settled(gpu(i).budget().snapshot()));
        REQUIRE_FALSE(virtual_contexts().primary(i).lives);
        REQUIRE_FALSE(virtual_contexts().has_company(virtual_contexts().primary(i)));
    }
    for (int physical = 0; physical < MadeUpPrimaries::kGpus; physical++) {
        REQUIRE_FALSE(memory_is_left(physical));
        REQUIRE(primaries.uses(physical) == 0);
    }
    REQUIRE(primaries.streams() == 0);
    REQUIRE(driver.held() == 0);
    REQUIRE(charged() == 0);
    REQUIRE(recorded_bytes() == 0);
}

}  // namespace cuslice::tests
