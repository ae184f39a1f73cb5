// SPDX-License-Identifier: Apache-2.0
#include "cli/top/history.h"

#include <algorithm>

namespace cuslice::cli::top {
namespace {

void append(std::vector<double>& values, double value) {
    if (values.size() == History::kMost)
        values.erase(values.begin());
    values.push_back(value);
}

}  // namespace

void History::note_times(std::vector<JobTime>& jobs, uint64_t now) {
    decltype(had_) had;
    const double passed = static_cast<double>(now - noted_);
    for (JobTime& job : jobs) {
        const auto key = std::tuple(job.gpu, job.user, job.name);
        had[key] = job.had;
        const auto before = had_.find(key);
        if (before == had_.end() || passed <= 0)
            continue;
        // At its end a turn may have taken less than it seemed to take.
        const uint64_t more = job.had - std::min(job.had, before->second);
        job.recent = std::min(1.0, static_cast<double>(more) / passed);
    }
    had_ = std::move(had);
    noted_ = now;
}

void History::note(Snapshot& snapshot, uint64_t now) {
    note_times(snapshot.holders.times, now);
    std::map<std::string, Moments> of_gpus;
    for (GpuLoad& load : snapshot.gpus) {
        const Gpu& gpu = load.gpu;
        Moments moments = std::move(of_gpus_[gpu.uuid]);
        if (gpu.free && gpu.total != 0)
            append(moments.used,
                   1 - static_cast<double>(std::min(gpu.total, *gpu.free)) / static_cast<double>(gpu.total));
        if (gpu.sensors.busy)
            append(moments.busy, std::min(*gpu.sensors.busy, 100U) / 100.0);
        load.moments = moments;
        of_gpus[gpu.uuid] = std::move(moments);
    }
    of_gpus_ = std::move(of_gpus);
}

}  // namespace cuslice::cli::top
