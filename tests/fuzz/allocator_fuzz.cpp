// SPDX-License-Identifier: Apache-2.0
// The caching allocator, made to do anything in any order, against a model that knows only what was promised: blocks
// don't overlap and lie in memory that is held; what the GPU may still use is nobody's; wrong frees are told; nothing
// is held beyond the limit, and nothing at all in the end.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "tests/policy/allocator/made_up_memory.h"

using namespace cuslice;

namespace {

using Freed = TestAllocator::Freed;

void expect(bool holds, int line = __builtin_LINE()) {
    if (holds)
        return;
    std::fprintf(stderr, "not so in line %d\n", line);
    std::abort();
}

// The input, a number at a time; zeros when it has ended.
struct Input {
    const uint8_t* data;
    size_t size;
    bool ended() const { return size == 0; }
    uint64_t byte() { return ended() ? 0 : (size--, *data++); }
    uint64_t word() { return byte() | byte() << 8; }
};

// A GPU that does its work in order, as far as `done`. The time is counted in operations.
struct Gpu : MadeUpMemory {
    uint64_t time = 1, done = 0;
    uint64_t clock = 1;             // for idle memory
    std::map<Fence, uint64_t> out;  // fences, and when they were made
    std::set<uint64_t> noted;       // blocks with a mark

    BackingTable asynchronous() {
        BackingTable b = backing();
        b.take = [](void* self, uint64_t bytes, AllocationError* denied) {
            return of(self).take_within(bytes, denied);
        };
        b.room = [](void* self) { return of(self).limit > of(self).held ? of(self).limit - of(self).held : 0; };
        b.quiesce = [](void* self, uint64_t, bool) {
            Gpu& gpu = of(self);
            if (gpu.capturing)
                return kNotNow;
            if (gpu.sync_error == 0)
                gpu.done = gpu.time;
            return gpu.sync_error;
        };
        b.fence = [](void* self, uint64_t) -> Fence {
            Gpu& gpu = of(self);
            if (gpu.capturing || gpu.sync_error || gpu.no_fences)
                return 0;
            gpu.out[++gpu.fences] = gpu.time;
            return gpu.fences;
        };
        b.past = [](void* self, uint64_t, Fence* fence) {
            Gpu& gpu = of(self);
            *fence = 0;
            if (gpu.capturing || gpu.sync_error || gpu.no_fences)
                return false;
            if (gpu.done >= gpu.time)
                return true;
            gpu.out[*fence = ++gpu.fences] = gpu.time;
            return false;
        };
        b.passed = [](void* self, Fence fence, bool wait) {
            Gpu& gpu = of(self);
            const auto found = gpu.out.find(fence);
            expect(found != gpu.out.end());
            if (gpu.capturing || gpu.sync_error)
                return false;
            if (wait)
                gpu.done = std::max(gpu.done, found->second);
            if (gpu.done < found->second)
                return false;
            gpu.out.erase(found);
            return true;
        };
        b.drop_fence = [](void* self, Fence fence) { expect(of(self).out.erase(fence) == 1); };
        b.forget = [](void* self, uint64_t address) {
            expect(of(self).noted.erase(address) == 1);
            return !of(self).keep_marked;
        };
        return b;
    }

  private:
    static Gpu& of(void* self) { return static_cast<Gpu&>(*static_cast<MadeUpMemory*>(self)); }
    uint64_t take_within(uint64_t bytes, AllocationError* denied) {
        if (held >= limit) {
            denied->by = AllocationError::By::limit;
            return 0;
        }
        return backing().take(static_cast<MadeUpMemory*>(this), bytes, denied);
    }
};

struct Model {
    TestAllocator& allocator;
    TestAllocator::Options options;
    Gpu gpu;
    std::map<uint64_t, uint64_t> live;  // address → bytes asked for
    struct Piece {
        uint64_t end, freed;  // when; ~0: it is never to be handed out again
    };
    std::multimap<uint64_t, Piece> freed;  // that the GPU has not come past
    bool abandoned = false;

    void open() { allocator.open(gpu.asynchronous(), shared_map(), options); }

    void handed_out(uint64_t address, uint64_t bytes) {
        expect(address % SizeClass::kUnit == 0);
        const auto after = live.lower_bound(address);
        expect(after == live.end() || after->first >= address + bytes);
        expect(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= address);
        auto segment = gpu.live.upper_bound(address);
        expect(segment != gpu.live.begin());
        --segment;
        expect(address + bytes <= segment->first + segment->second);
        std::erase_if(freed, [&](const auto& piece) { return piece.second.freed <= gpu.done; });
        for (const auto& [start, piece] : freed)
            expect(piece.end <= address || start >= address + bytes);
        live[address] = bytes;
        const TestAllocator::Found found = TestAllocator::find(shared_map(), address + bytes - 1);
        expect(found.address == address && found.requested == bytes && found.owner == &allocator);
        expect(TestAllocator::find(shared_map(), address + bytes).address != address);
        expect(shared_map().holds(address, bytes));
        expect(shared_map().holds(address + bytes - 1, 1));
        const uint64_t room = after == live.end() ? ~0ull : after->first - address + 1;
        expect(!shared_map().holds(address, room));
        expect(!shared_map().holds(address + bytes - 1, room));
    }

    void allocate(uint64_t bytes) {
        AllocationError denied;
        const uint64_t address = allocator.allocate(bytes, &denied);
        if (address)
            return handed_out(address, bytes);
        expect(denied.by != AllocationError::By::nobody);
        if (denied.by == AllocationError::By::failure)
            return;
        const uint64_t more = std::max(bytes, bytes + SizeClass::kUnit - 1);  // no less by an overflow
        const uint64_t whole = more / SizeClass::kUnit * SizeClass::kUnit;
        const uint64_t need = bytes > SizeClass::kMax ? whole : SizeClass::span_bytes(SizeClass::of(bytes));
        // Not with a block at hand. (Spans and huge blocks lie on a boundary, and what is free may not.)
        const uint64_t boundary = GrowthPolicy::huge(need) ? GrowthPolicy::kGranule : SizeClass::kGranule;
        expect(allocator.statistics().largest_free < std::max(need, need + boundary));
    }

    void free(uint64_t address) {
        int error = 0;
        const bool is_noted = gpu.noted.count(address) != 0;
        const Freed result = TestAllocator::free(shared_map(), address, &error);
        const auto block = live.find(address);
        if (block == live.end()) {
            // The ends of a segment that the driver doesn't align are nobody's.
            const bool nobodys = !gpu_has(address) || (gpu.unaligned && result == Freed::not_ours);
            expect(result == (nobodys ? Freed::not_ours : Freed::invalid) || result == Freed::failed);
            return;
        }
        if (result == Freed::failed) {
            expect(error == gpu.sync_error && error != 0);
            return;
        }
        expect(result == Freed::done && gpu.noted.count(address) == 0);
        const bool never = is_noted && gpu.keep_marked;
        abandoned = abandoned || never;
        // Its segment may be gone with it.
        const bool anybodys = !gpu_has(address);
        expect(shared_map().holds(address, 1) == anybodys);
        expect(shared_map().holds(address + block->second - 1, 1) == anybodys);
        freed.insert({address, {address + block->second, never ? ~0ull : gpu.time}});
        live.erase(block);
    }

    bool gpu_has(uint64_t address) const {
        const auto segment = gpu.live.upper_bound(address);
        return segment != gpu.live.begin() && address < std::prev(segment)->first + std::prev(segment)->second;
    }

    uint64_t some_block(uint64_t which) const {
        return live.empty() ? 0 : std::next(live.begin(), static_cast<ptrdiff_t>(which % live.size()))->first;
    }

    void mark(uint64_t address) {
        if (TestAllocator::mark(shared_map(), address)) {
            expect(live.count(address) == 1);
            gpu.noted.insert(address);
        } else {
            expect(live.count(address) == 0);
        }
    }

    void give_back(uint64_t bytes, bool all) {
        const uint64_t before = gpu.held;
        const uint64_t given =
            all ? allocator.trim(bytes) : allocator.release_idle(gpu.clock, bytes >> 1 & 63, bytes & 1);
        expect(before - gpu.held == given);
        const bool nothing_left = all && bytes == ~0ull && live.empty() && !abandoned;
        if (nothing_left && !gpu.capturing && !gpu.sync_error && !gpu.takes_nothing_back)
            expect(gpu.held == 0);
    }

    void close() {
        allocator.close();
        expect(allocator.reserved() == 0 && allocator.unused() == 0 && gpu.out.empty());
        const Statistics told = allocator.statistics();
        expect(told.allocated.current == 0 && told.requested.current == 0 && told.reserved.current == 0);
        for (const auto& [address, bytes] : live) {
            int error = 0;
            expect(TestAllocator::find(shared_map(), address).address == 0);
            expect(TestAllocator::free(shared_map(), address, &error) == Freed::not_ours);
        }
        gpu.live.clear(), gpu.noted.clear();
        gpu.held = 0;
        live.clear(), freed.clear();
        abandoned = false;
    }

    void check() {
        uint64_t requested = 0;
        for (const auto& [address, bytes] : live)
            requested += bytes;
        const Statistics told = allocator.statistics();
        expect(told.requested.current == requested);
        expect(told.allocated.current >= requested && told.active.current >= told.allocated.current);
        expect(told.reserved.current == gpu.held && allocator.reserved() == gpu.held);
        expect(allocator.unused() <= gpu.held && told.segments == gpu.live.size());
    }
};

uint64_t size_of(Input& input) {
    const uint64_t kind = input.byte(), word = input.word();
    if (kind == 255)
        return ~0ull - word;
    if (kind < 150)
        return word % (SizeClass::kMax >> kind % 8) + 1;
    return ((word % 256 + 1) << (10 + kind % 15)) - (kind % 3);
}

void act(Model& model, Input& input) {
    model.gpu.time++;
    const uint64_t what = input.byte() % 32;
    if (what < 12)
        return model.allocate(size_of(input));
    switch (what) {
        default:
            return model.free(model.some_block(input.byte()));
        case 22:  // into the middle, or nobody's
            return model.free(model.some_block(input.byte()) + input.word());
        case 23:
            return model.mark(model.some_block(input.byte()));
        case 24:
            model.gpu.done = std::max(model.gpu.done, model.gpu.time - std::min(model.gpu.time, input.byte()));
            return;
        case 25:
            model.gpu.capturing = !model.gpu.capturing;
            return;
        case 26: {
            const uint64_t kind = input.byte() % 8;
            model.gpu.sync_error = kind < 2 ? kLaunchFailed : 0;
            model.gpu.takes_nothing_back = kind == 2;
            model.gpu.no_fences = kind == 3;
            model.gpu.failure = kind == 4 ? kStreamCaptureUnsupported : 0;
            return;
        }
        case 27:
            model.gpu.limit = input.word() << 16;
            return;
        case 28:
            return model.give_back(input.byte() % 2 ? ~0ull : input.word() << 16, true);
        case 29:
            model.gpu.clock += input.byte();
            return model.give_back(input.byte(), false);
        case 30:
            model.gpu.physical = input.byte() % 4 == 0 ? input.word() << 16 : 1ull << 46;
            return;
        case 31:
            if (input.byte() % 4 != 0) {
                AllocationError denied;
                model.allocator.top_up(&denied);
                return;
            }
            model.close();
            model.open();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 4)
        return 0;
    // Their records are for good, so that they are, too. One that has seen a driver that aligns badly remembers it.
    static auto* aligned = new TestAllocator;
    static auto* unaligned = new TestAllocator;
    Input input{data, size};
    const uint64_t how = input.byte();
    Model model{how & 1 ? *unaligned : *aligned, {}, {}, {}, {}};
    model.options.reuse = how & 2 ? TestAllocator::Reuse::deferred : TestAllocator::Reuse::strict;
    model.options.preallocate = (how & 12) == 12;
    model.gpu.unaligned = how & 1 ? 512 << (how >> 4 & 7) : 0;
    model.gpu.keep_marked = (how & 128) != 0;
    model.gpu.limit = input.word() << 14;
    model.open();
    while (!input.ended()) {
        act(model, input);
        model.check();
    }
    model.close();
    return 0;
}
