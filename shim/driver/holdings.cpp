// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/holdings.h"

#include <utility>

#include "config/size.h"
#include "shim/process/process.h"
#include "virtual_gpu/gpu/before_freeing.h"

namespace cuslice {

namespace {

constexpr std::string_view kKinds[] = {"cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged", "exported", "arrays"};
constexpr size_t kKindCount = sizeof(kKinds) / sizeof(kKinds[0]);

struct Sums {
    int gpu;
    uint64_t bytes[kKindCount];
    uint64_t blocks[kKindCount];
};

void add_up(const Allocation& allocation, void* argument) {
    auto& sum = *static_cast<Sums*>(argument);
    if (allocation.gpu != sum.gpu || allocation.kind >= kKindCount || allocation.bytes == 0)
        return;
    sum.bytes[allocation.kind] += allocation.bytes;
    sum.blocks[allocation.kind]++;
}

// `noting`: somebody reads or writes the rest, for which nobody waits.
struct Noted {
    std::atomic<bool> noting{false};
    std::atomic<uint64_t> used{0};  // bytes, when `holdings` were noted
    Holdings holdings;
};
constinit Noted noted[Process::kMaxGpus];

void note(VirtualGpu& gpu) {
    Noted& most = noted[gpu.ordinal()];
    const uint64_t used = gpu.budget().used(), before = most.used.load(std::memory_order_relaxed);
    if (used <= before + before / 64 || most.noting.exchange(true, std::memory_order_acquire))
        return;
    most.holdings = holdings_of(gpu);
    most.used.store(used, std::memory_order_relaxed);
    most.noting.store(false, std::memory_order_release);
}

}  // namespace

void Holdings::add(std::string_view who, uint64_t bytes, uint64_t blocks) {
    if (bytes != 0 && count < kMost)
        parts[count++] = {who, bytes, blocks};
}

void Holdings::sort() {
    for (unsigned i = 1; i < count; i++)
        for (unsigned k = i; k > 0 && parts[k].bytes > parts[k - 1].bytes; k--)
            std::swap(parts[k], parts[k - 1]);
}

Holdings holdings_of(const VirtualGpu& gpu) {
    Sums sum{gpu.ordinal(), {}, {}};
    gpu_state().allocations.for_each(add_up, &sum);
    Holdings holdings;
    if (!gpu.slice().plus_context)
        holdings.add("contexts and modules", gpu.driver_footprint(), 0);
    for (size_t kind = 0; kind < kKindCount; kind++)
        holdings.add(kKinds[kind], sum.bytes[kind], sum.blocks[kind]);
    uint64_t created_blocks = 0;
    const uint64_t created = gpu_state().physical_memory.held_on(gpu.ordinal(), &created_blocks);
    holdings.add("cuMemCreate", created, created_blocks);
    holdings.add("memory pools and graphs", gpu.pools().charged(), 0);
    return holdings;
}

void append_holdings(LogLine& line, const Holdings& holdings) {
    for (unsigned i = 0; i < holdings.count; i++) {
        const Holdings::Part& part = holdings.parts[i];
        line.append(i ? ", " : "", part.who, ' ', format_size(part.bytes));
        if (part.blocks)
            line.append(" in ", part.blocks, part.blocks == 1 ? " block" : " blocks");
    }
    if (!holdings.count)
        line.append("nothing yet");
}

void watch_holdings() { before_freeing.store(note_holdings, std::memory_order_relaxed); }

void note_holdings() {
    if (!before_freeing.load(std::memory_order_relaxed))
        return;
    for (VirtualGpu& gpu : process().gpus())
        if (gpu.limited())
            note(gpu);
}

void append_most_held(LogLine& line, const VirtualGpu& gpu) {
    Noted& most = noted[gpu.ordinal()];
    if (most.noting.exchange(true, std::memory_order_acquire))
        return;
    Holdings holdings = most.holdings;
    most.noting.store(false, std::memory_order_release);
    holdings.sort();
    if (holdings.count)
        append_holdings(line.append("; what held most: "), holdings);
}

}  // namespace cuslice
