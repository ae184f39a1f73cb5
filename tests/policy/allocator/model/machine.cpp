// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/allocator/model/machine.h"

#include <algorithm>
#include <iterator>
#include <thread>

namespace cuslice::model {

namespace {

// The driver takes its time, in which others get on.
void linger() {
    for (uint64_t turns = Machine::chance()() % 8; turns > 5; turns--)
        std::this_thread::yield();
}

constexpr uint64_t kSpace = Shadow::kBytes / Machine::kGpus, kBoundary = 2 * kMiB;

}  // namespace

std::mt19937_64& Machine::chance() {
    static thread_local std::mt19937_64 random;
    return random;
}

Machine::Machine(const Rules& rules, TestAllocator::Map& map, Findings& findings)
    : shadow(findings, work), rules_(rules), map_(map), findings_(findings) {
    for (unsigned g = 0; g < kGpus; g++)
        gpus_[g].free[Shadow::kBase + g * kSpace] = kSpace;
    for (unsigned c = 0; c < kContexts; c++) {
        contexts_[c].machine = this;
        contexts_[c].number = c;
        contexts_[c].allocator = new TestAllocator;  // threads may hold on to it
        open(c);
    }
}

Machine::~Machine() {
    for (Context& context : contexts_) {
        close(context.number);
        delete context.allocator;
    }
}

void Machine::open(unsigned number) {
    Context& context = contexts_[number];
    context.lives = true;
    context.allocator->open(backing(context), map_, rules_.options);
}

// Its memory is the driver's again only when the allocator has forgotten it: the driver could hand it out.
void Machine::close(unsigned number) {
    Context& context = contexts_[number];
    {
        const std::lock_guard lock(gpu(context).mutex);
        if (!context.lives)
            return;
        context.lives = false;
    }
    context.allocator->close();
    const std::lock_guard lock(gpu(context).mutex);
    for (const auto& [address, bytes] : context.segments) {
        shadow.end_segment(address, bytes, true);
        for (uint64_t at = address; at < address + bytes; at += kBoundary)
            findings_.expect(!map_.segment(at) && !TestAllocator::find(map_, at).address,
                             "an address of a closed allocator is still known", at);
        put(gpu(context), address, bytes);
    }
    context.segments.clear();
}

void Machine::restart(unsigned number) {
    close(number);
    while (contexts_[number].visitors)
        std::this_thread::yield();
    const std::lock_guard lock(gpu(contexts_[number]).mutex);
    open(number);
}

BackingTable Machine::backing(Context& context) {
    BackingTable b;
    b.self = &context;
    b.take = [](void* self, uint64_t bytes, AllocationError* denied) {
        return of(self).machine->take(of(self), bytes, denied);
    };
    b.give_back = [](void* self, uint64_t address, uint64_t bytes) {
        return of(self).machine->give_back(of(self), address, bytes);
    };
    b.room = [](void* self) { return of(self).machine->room(of(self)); };
    b.quiesce = [](void* self, uint64_t address, bool) { return of(self).machine->quiesce(of(self), address); };
    b.in_context = [](void*) { return 0; };
    b.fence = [](void* self, uint64_t address) { return of(self).machine->fence(of(self), address); };
    b.past = [](void* self, uint64_t address, Fence* fence) {
        *fence = of(self).machine->fence(of(self), address);
        if (!*fence || !of(self).machine->passed(*fence, false))
            return false;
        *fence = 0;
        return true;
    };
    b.passed = [](void* self, Fence fence, bool wait) { return of(self).machine->passed(fence, wait); };
    b.drop_fence = [](void* self, Fence fence) {
        delete reinterpret_cast<Work::Points*>(fence);
        of(self).machine->fences_out_--;
    };
    b.capturing = [](void* self) { return of(self).machine->capturing.load(); };
    b.wanted = [](void* self) { return of(self).machine->wanted.load(std::memory_order_relaxed); };
    b.forget = [](void* self, uint64_t address) { return of(self).machine->forget(address); };
    b.thread_began = [](void*) {};
    return b;
}

uint64_t Machine::take(Context& context, uint64_t bytes, AllocationError* denied) {
    Gpu& on = gpu(context);
    for (bool trimmed = false;; trimmed = true) {
        {
            const std::lock_guard lock(on.mutex);
            if (bytes <= rules_.limit - on.held) {
                denied->by = goes_wrong(rules_.failures) ? AllocationError::By::failure : AllocationError::By::driver;
                denied->error = denied->by == AllocationError::By::failure ? kFailure : kOutOfMemory;
                if (denied->by == AllocationError::By::failure || goes_wrong(rules_.no_memory) || !context.lives)
                    return 0;
                const uint64_t address = place(on, bytes);
                if (!address)
                    return 0;
                on.held += bytes;
                shadow.begin_segment(address, bytes, context.number);
                context.segments[address] = bytes;
                return address;
            }
        }
        denied->by = AllocationError::By::limit;
        if (trimmed)
            return 0;
        for (const Context& other : contexts_) {
            if (&other == &context || &gpu(other) != &on)
                continue;
            const Visit visit(*this, other.number);
            if (visit)
                other.allocator->trim(bytes);
        }
    }
}

uint64_t Machine::place(Gpu& on, uint64_t bytes) {
    for (const auto& [begin, size] : on.free) {
        const uint64_t at = (begin + kBoundary - 1) / kBoundary * kBoundary + rules_.shift, end = begin + size;
        if (at + bytes > end)
            continue;
        const uint64_t before = begin;
        on.free.erase(before);
        if (at > before)
            on.free[before] = at - before;
        if (end > at + bytes)
            on.free[at + bytes] = end - at - bytes;
        return at;
    }
    return 0;
}

// With the lock held.
void Machine::put(Gpu& on, uint64_t address, uint64_t bytes) {
    on.held -= bytes;
    uint64_t begin = address, end = address + bytes;
    auto after = on.free.lower_bound(address);
    if (after != on.free.end() && after->first == end) {
        end += after->second;
        after = on.free.erase(after);
    }
    if (after != on.free.begin() && std::prev(after)->first + std::prev(after)->second == begin) {
        begin = std::prev(after)->first;
        on.free.erase(begin);
    }
    on.free[begin] = end - begin;
}

bool Machine::give_back(Context& context, uint64_t address, uint64_t bytes) {
    // Checked with one thread only: with more, another one may have begun to capture just now.
    findings_.expect(!alone || !capturing, "memory is given back while a stream is captured", address);
    const std::lock_guard lock(gpu(context).mutex);
    if (!context.lives)
        return true;
    if (goes_wrong(rules_.keeps))
        return false;
    const auto segment = context.segments.find(address);
    // One of the context's earlier life, if its allocator doesn't keep them apart.
    if (segment == context.segments.end() || segment->second != bytes) {
        findings_.note("what is given back is no segment", address, bytes);
        return true;
    }
    context.segments.erase(segment);
    // The driver's free waits for what may still use it.
    work.finish(work.given(reach(context.number)));
    shadow.end_segment(address, bytes, false);
    put(gpu(context), address, bytes);
    return true;
}

uint64_t Machine::room(const Context& context) {
    Gpu& on = gpus_[gpu_of(context.number)];
    const std::lock_guard lock(on.mutex);
    return rules_.limit - on.held;
}

uint64_t Machine::held(unsigned number) {
    const std::lock_guard lock(gpus_[number].mutex);
    return gpus_[number].held;
}

int Machine::quiesce(Context& context, uint64_t address) {
    findings_.expect(!alone || shadow.in_segment(address, context.number), "a wait for the work on nobody's memory",
                     address);
    if (capturing)
        return kNotNow;
    if (goes_wrong(rules_.errors))
        return kError;
    work.finish(work.given(reach(context.number)));
    linger();
    return 0;
}

Fence Machine::fence(Context& context, uint64_t address) {
    findings_.expect(!alone || shadow.in_segment(address, context.number), "a fence for nobody's memory", address);
    if (capturing || !rules_.fences || goes_wrong(rules_.errors))
        return 0;
    fences_out_++;
    linger();
    return reinterpret_cast<Fence>(new Work::Points(work.given(reach(context.number))));
}

bool Machine::passed(Fence fence, bool wait) {
    if (capturing || goes_wrong(rules_.errors))
        return false;
    auto* points = reinterpret_cast<Work::Points*>(fence);
    if (wait)
        work.finish(*points);
    if (!work.past(*points))
        return false;
    delete points;
    fences_out_--;
    linger();
    return true;
}

void Machine::mark(uint64_t address, bool for_good) {
    const std::lock_guard lock(marks_mutex_);
    marks_[address] = for_good;
}

bool Machine::marked_for_good(uint64_t address) {
    const std::lock_guard lock(marks_mutex_);
    const auto mark = marks_.find(address);
    return mark != marks_.end() && mark->second;
}

bool Machine::forget(uint64_t address) {
    const std::lock_guard lock(marks_mutex_);
    const auto mark = marks_.find(address);
    findings_.expect(mark != marks_.end(), "a block is forgotten that was not marked", address);
    if (mark == marks_.end())
        return true;
    const bool for_good = mark->second;
    marks_.erase(mark);
    abandoned += for_good;
    return !for_good;
}

}  // namespace cuslice::model
