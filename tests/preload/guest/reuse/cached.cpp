// SPDX-License-Identifier: Apache-2.0
// Churns on the caching allocator itself, one for each context, with the GPU asked in the right way or in a wrong one:
// that a wrong way is found out shows what the checks of the right one are worth.
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "tests/policy/allocator/test_backing.h"
#include "tests/preload/guest/reuse/program.h"

namespace {

using cuslice::AllocationError;
using cuslice::Fence;
using cuslice::TestAllocator;

// all: every context is asked. own: the allocator's alone, as if nobody else could reach its memory. none: nobody.
enum class Ask { all, own, none };

struct Place {
    TestAllocator allocator;
    std::vector<CUcontext> asked;
    CUcontext context = nullptr;
    uint64_t limit = 0, held = 0;
    std::atomic<uint64_t> fences{0};
    std::mutex mutex;

    static Place& of(void* self) { return *static_cast<Place*>(self); }
};

struct Current {
    explicit Current(CUcontext context) { REUSE_MUST(cuCtxPushCurrent(context)); }
    ~Current() {
        CUcontext popped = nullptr;
        REUSE_MUST(cuCtxPopCurrent(&popped));
    }
};

uint64_t take(void* self, uint64_t bytes, AllocationError* denied) {
    Place& place = Place::of(self);
    const std::lock_guard lock(place.mutex);
    if (bytes > place.limit - place.held) {
        denied->by = AllocationError::By::limit;
        return 0;
    }
    const Current current(place.context);
    CUdeviceptr address = 0;
    REUSE_MUST(cuMemAlloc(&address, bytes));
    place.held += bytes;
    return address;
}

bool give_back(void* self, uint64_t address, uint64_t bytes) {
    Place& place = Place::of(self);
    const std::lock_guard lock(place.mutex);
    const Current current(place.context);
    REUSE_MUST(cuMemFree(address));
    place.held -= bytes;
    return true;
}

int quiesce(void* self) {
    for (const CUcontext context : Place::of(self).asked) {
        const Current current(context);
        REUSE_MUST(cuCtxSynchronize());
    }
    return 0;
}

// A fence is one event of each context.
using Events = std::vector<CUevent>;

Fence fence(void* self, uint64_t) {
    Place::of(self).fences++;
    auto* events = new Events;
    for (const CUcontext context : Place::of(self).asked) {
        const Current current(context);
        CUevent event = nullptr;
        REUSE_MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        REUSE_MUST(cuCtxRecordEvent(context, event));
        events->push_back(event);
    }
    return reinterpret_cast<Fence>(events);
}

void drop(void*, Fence fence) {
    auto* events = reinterpret_cast<Events*>(fence);
    for (const CUevent event : *events)
        REUSE_MUST(cuEventDestroy(event));
    delete events;
}

bool passed(void* self, Fence fence, bool wait) {
    for (const CUevent event : *reinterpret_cast<Events*>(fence)) {
        const CUresult result = wait ? cuEventSynchronize(event) : cuEventQuery(event);
        if (result == CUDA_ERROR_NOT_READY)
            return false;
        reuse::must(result, "the fence's event");
    }
    drop(self, fence);
    return true;
}

cuslice::BackingTable backing_of(Place& place) {
    cuslice::BackingTable backing;
    backing.self = &place;
    backing.take = take;
    backing.give_back = give_back;
    backing.room = [](void* self) { return Place::of(self).limit - Place::of(self).held; };
    backing.quiesce = [](void* self, uint64_t, bool) { return quiesce(self); };
    backing.in_context = [](void*) { return 0; };
    backing.wanted = [](void*) { return false; };
    backing.fence = fence;
    backing.past = [](void* self, uint64_t address, Fence* made) {
        *made = fence(self, address);
        if (!*made || !passed(self, *made, false))
            return false;
        *made = 0;
        return true;
    };
    backing.passed = passed;
    backing.drop_fence = drop;
    backing.forget = [](void*, uint64_t) { return true; };
    backing.thread_began = [](void*) {};
    return backing;
}

}  // namespace

// Beyond the common words: strict or deferred, whom to ask (all, own, none), and the limit of each context.
int main(int count, char** words) {
    if (count != reuse::kWords + 3)
        return 64;
    const reuse::Command command = reuse::read_command(words);
    const std::string how = words[reuse::kWords], asked = words[reuse::kWords + 1];
    const Ask ask = asked == "all" ? Ask::all : asked == "own" ? Ask::own : Ask::none;
    TestAllocator::Options options;
    options.reuse = how == "deferred" ? TestAllocator::Reuse::deferred : TestAllocator::Reuse::strict;

    const std::vector<CUcontext> contexts = reuse::make_places(command);
    static TestAllocator::Map map;
    auto& places = *new std::deque<Place>(contexts.size());
    for (size_t i = 0; i < contexts.size(); i++) {
        places[i].context = contexts[i];
        places[i].limit = std::strtoull(words[reuse::kWords + 2], nullptr, 10);
        if (ask == Ask::all)
            places[i].asked = contexts;
        if (ask == Ask::own)
            places[i].asked = {contexts[i]};
        places[i].allocator.open(backing_of(places[i]), map, options);
    }
    const reuse::Memory memory{
        [&](unsigned place, CUdeviceptr* out, size_t bytes) {
            AllocationError denied;
            *out = places[place].allocator.allocate(bytes, &denied);
            return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        },
        [&](CUdeviceptr address) {
            int error = 0;
            const bool freed = TestAllocator::free(map, address, &error) == TestAllocator::Freed::done;
            return freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        },
        {},
    };
    reuse::print(reuse::run(command, contexts, memory));
    uint64_t waits = 0, fences = 0;
    for (Place& place : places) {
        waits += place.allocator.statistics().syncs;
        fences += place.fences;
    }
    std::printf("waits %llu fences %llu\n", static_cast<unsigned long long>(waits),
                static_cast<unsigned long long>(fences));
    return 0;
}
