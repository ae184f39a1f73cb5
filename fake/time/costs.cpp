// SPDX-License-Identifier: Apache-2.0
#include "fake/time/costs.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "fake/duration.h"

namespace cuslice::fake {
namespace {

/// Bytes a second over one PCI Express lane, by generation: the raw rate less the encoding, of which copies of
/// page-locked memory reach about four fifths.
double lane_bytes(uint64_t generation) {
    constexpr double kLane[] = {0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9, 15.125e9};
    const auto index = std::min<uint64_t>(generation, std::size(kLane)) - 1;
    return 0.8 * kLane[index];
}

double memory_bytes(const GpuSpec& gpu) {
    return static_cast<double>(gpu.memory_clock) * 2e6 * static_cast<double>(gpu.memory_bus_width) / 8;
}

Time time_of(uint64_t bytes, double bytes_per_second) {
    return kTransferTime + static_cast<Time>(static_cast<double>(bytes) * 1e9 / bytes_per_second);
}

uint64_t divided_up(uint64_t number, uint64_t by) { return (number + by - 1) / by; }

}  // namespace

bool KernelCosts::parse(const std::string& text, std::string& error) {
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string item = text.substr(at, end - at);
        at = end + 1;
        const size_t equals = item.rfind('=');
        Cost cost;
        std::string time = equals == std::string::npos ? "" : item.substr(equals + 1);
        cost.pattern = item.substr(0, equals);
        cost.each_wave = time.ends_with("/wave");
        if (cost.each_wave)
            time.resize(time.size() - std::string("/wave").size());
        cost.held = !cost.each_wave && time == "until";
        if (cost.pattern.empty() || (!cost.held && !parse_duration(time, cost.time))) {
            error = "'" + item +
                    "' is no cost: write PATTERN=TIME, PATTERN=TIME/wave or PATTERN=until, such as gemm*=200us";
            return false;
        }
        costs_.push_back(std::move(cost));
    }
    return true;
}

Work KernelCosts::kernel(const std::string& name, uint64_t blocks, uint64_t blocks_at_once, const GpuSpec& gpu) const {
    const uint64_t at_once = std::max<uint64_t>(blocks_at_once, 1);
    const uint64_t waves = divided_up(blocks, at_once * gpu.multiprocessors);
    const auto cost = std::ranges::find_if(
        costs_, [&](const Cost& one) { return fnmatch(one.pattern.c_str(), name.c_str(), 0) == 0; });
    Work work{.engine = Engine::compute};
    work.multiprocessors = static_cast<uint32_t>(std::min(divided_up(blocks, at_once), gpu.multiprocessors));
    if (cost == costs_.end()) {
        work.duration = kWaveTime * waves;
        return work;
    }
    work.held = cost->held;
    work.duration = cost->time * (cost->each_wave ? waves : 1);
    return work;
}

Work copy_of(Engine engine, uint64_t bytes, const GpuSpec& gpu) {
    Work work{.engine = engine, .multiprocessors = static_cast<uint32_t>(gpu.multiprocessors)};
    if (engine == Engine::compute || gpu.integrated)
        work.duration = time_of(2 * bytes, memory_bytes(gpu));  // each is read and written
    else
        work.duration = time_of(bytes, lane_bytes(gpu.pcie_generation) * static_cast<double>(gpu.pcie_width));
    return work;
}

Work fill_of(uint64_t bytes, const GpuSpec& gpu) {
    return {.engine = Engine::compute,
            .multiprocessors = static_cast<uint32_t>(gpu.multiprocessors),
            .duration = time_of(bytes, memory_bytes(gpu))};
}

}  // namespace cuslice::fake
