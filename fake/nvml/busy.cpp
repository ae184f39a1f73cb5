// SPDX-License-Identifier: Apache-2.0
#include "fake/nvml/busy.h"

#include <time.h>

#include <algorithm>
#include <mutex>

#include "fake/time/figures.h"
#include "fake/time/futex.h"
#include "fake/time/reader.h"
#include "fake/try.h"

namespace cuslice::fake {
namespace {

constexpr Time kSamplePeriod = 1'000'000'000;  // NVIDIA's is a second or less, "depending on the product"
constexpr Time kMicrosecond = 1000;

/// Calls f(reader) with figures of this moment. False: no work was timed.
template <typename F>
bool read_time(F&& f) {
    static constinit std::mutex lock;
    static auto* reader = new TimeReader;
    const std::lock_guard hold(lock);
    if (!reader->refresh(books_folder()))
        return false;
    f(*reader);
    return true;
}

unsigned percent(Time busy, Time length) {
    return static_cast<unsigned>((std::min(busy, length) * 100 + length / 2) / length);
}

/// Copies in both directions count as if they had not overlapped.
Time copies(const BusyTimes& busy) {
    return busy[static_cast<size_t>(Engine::copy_in)] + busy[static_cast<size_t>(Engine::copy_out)];
}

Usage usage(const BusyTimes& busy, Time length) {
    return {percent(busy[static_cast<size_t>(Engine::compute)], length), percent(copies(busy), length)};
}

bool used(const BusyTimes& busy) { return copies(busy) + busy[static_cast<size_t>(Engine::compute)] > 0; }

/// Between the clock of work's time, which counts from the machine's start, and that of NVML's times.
Time since_epoch_at_start() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<Time>(time.tv_sec) * 1'000'000'000 + static_cast<Time>(time.tv_nsec) - monotonic_time();
}

void sample_holders(const TimeReader& reader, const std::vector<NvmlHolder>& holders, unsigned long long since,
                    UsageSample& sample) {
    const Time now = reader.now(), start = since_epoch_at_start();
    sample.time = (start + now) / kMicrosecond;
    if (since >= sample.time)
        return;
    // The whole of what is known for a time before it, so before the clock's start.
    const Time length = std::min<Time>((sample.time - since) * kMicrosecond, kTimeKept);
    for (const NvmlHolder& holder : holders) {
        const BusyTimes busy = reader.busy_within(uuid_text(*holder.spec), holder.holder.pid, length);
        const auto listed = static_cast<unsigned>(holder.spec->driver.listed_pid(holder.pid));
        if (used(busy))
            sample.processes.push_back({listed, usage(busy, length)});
    }
}

}  // namespace

Usage usage_of(const NvmlDevice& device) {
    Usage now;
    read_time([&](const TimeReader& reader) {
        now = usage(reader.busy_within(uuid_text(device.spec), kSamplePeriod), kSamplePeriod);
    });
    return now;
}

nvmlReturn_t sample_usage(NvmlDevice& device, unsigned long long since, UsageSample& sample) {
    std::vector<NvmlHolder> holders;
    // "On MIG-enabled GPUs, querying process utilization is not currently supported."
    const bool divided = device.spec.is_instance || !device.spec.mig.empty();
    if (device.spec.driver.process_list == "listed" && !divided)
        CUSLICE_TRY(holders_of(device, holders));
    read_time([&](const TimeReader& reader) { sample_holders(reader, holders, since, sample); });
    return NVML_SUCCESS;
}

}  // namespace cuslice::fake
