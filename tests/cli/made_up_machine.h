// SPDX-License-Identifier: Apache-2.0
// A machine as `cuslice top` might see it, made up: no terminal, no GPU.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/top/canvas.h"
#include "cli/top/view.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"
#include "tests/catch.h"

namespace cuslice::tests {

using namespace cli::top;

constexpr uint64_t kMiB = 1 << 20;
constexpr unsigned kNobody = 4'000'000'001;  // a user without a name

inline std::string uuid(unsigned number) { return "GPU-00000000-0000-0000-0000-00000000000" + std::to_string(number); }

inline cli::Gpu gpu(int index, uint64_t total, std::optional<uint64_t> free, std::string name = "NVIDIA H200") {
    cli::Gpu one;
    one.ordinal = index;
    one.name = std::move(name);
    one.uuid = uuid(static_cast<unsigned>(index));
    one.pci = "00000000:0" + std::to_string(index) + ":00.0";
    one.total = total * kMiB;
    if (free)
        one.free = *free * kMiB;
    return one;
}

inline cli::Holder job(int pid, std::string command, uint64_t used, uint64_t limit) {
    cli::Holder holder;
    holder.gpu = uuid(0);
    holder.user = kNobody;
    holder.kind = "job";
    holder.name = std::to_string(pid) + "-00c0ffee";
    holder.pid = pid;
    holder.command = std::move(command);
    holder.used = holder.together = used * kMiB;
    holder.peak = (used + 1) * kMiB;
    holder.reserved = holder.limit = limit * kMiB;
    holder.since = now_realtime();
    return holder;
}

inline Snapshot machine_of_one() {
    Snapshot snapshot;
    snapshot.clock = "12:34:56";
    snapshot.gpus = {{gpu(0, 16000, 9000), 8000 * kMiB, "/etc/cuslice/cuslice.toml"}};
    snapshot.places[uuid(0)] = {0, {}};
    return snapshot;
}

inline Snapshot busy_machine() {
    Snapshot snapshot = machine_of_one();
    snapshot.gpus.push_back({gpu(1, 16000, {}), {}, {}});
    snapshot.places[uuid(1)] = {1, {}};
    snapshot.places["GPU-part"] = {1, 2};
    auto& holding = snapshot.holders.holding;
    holding = {job(811, "python", 3000, 4000), job(900, "serve", 1000, 8000), job(901, "worker", 500, 8000),
               job(77, "a.out", 100, 4000)};
    // Two processes in a group, which reserves nothing and has no limit.
    for (const int i : {1, 2}) {
        holding[i].kind = "group", holding[i].name = "lab", holding[i].together = 1500 * kMiB;
        holding[i].peak = 1600 * kMiB;
        holding[i].reserved = 0, holding[i].limit = ledger::kNoLimitBytes, holding[i].inner = true;
    }
    holding[3].gpu = "GPU-part";
    cli::WaitingProcess waiting{uuid(0), {}, 1, 2};
    waiting.waiter.user = kNobody, waiting.waiter.pid = 5150, waiting.waiter.bytes = 12000 * kMiB;
    waiting.waiter.since = now_realtime();
    std::string("late.py").copy(waiting.waiter.command, 7);
    snapshot.holders.waiting = {waiting};
    Cache cache{811, "python", {}};
    cache.stats.uuid = uuid(0), cache.stats.mode = 1;
    cache.stats.statistics.allocated.current = 1000 * kMiB;
    cache.stats.statistics.reserved.current = 2000 * kMiB, cache.stats.statistics.reserved.peak = 2500 * kMiB;
    snapshot.caches = {cache};
    return snapshot;
}

inline std::string plain_text(const Lines& lines, bool utf8 = true) {
    TextCanvas canvas(utf8, false);
    draw(lines, canvas);
    return canvas.drawn();
}

inline std::string drawn(const Snapshot& snapshot, const Look& look) {
    const Lines lines = draw(snapshot, look);
    for (const Line& line : lines) {
        CAPTURE(plain_text(Lines{line}));
        CHECK(columns_of(line) <= look.width);
    }
    return plain_text(lines, look.utf8);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace cuslice::tests
