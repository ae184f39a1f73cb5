// SPDX-License-Identifier: Apache-2.0
// Six jobs on two GPUs: two on each of them and two on both; what is fair among them, and how long each may wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "policy/lease/rounds.h"

namespace cuslice::tests {

class SixJobs {
  public:
    static constexpr unsigned kJobs = 6, kGpus = 2;

    static uint32_t gpus_of(unsigned job) { return job < 2 ? 1 : job < 4 ? 2 : 3; }
    static bool has(unsigned job, unsigned gpu) { return gpus_of(job) & lease::bit(gpu); }

    /// Parts of the time that are fair among those who want it, if each GPU was busy for this part of it: all jobs'
    /// grow by their weights, and a job's no further where one of its GPUs is full, as it has all of them at once. A
    /// GPU that has drained stands idle until the other one has, where both are kept for a job: that is nobody's time,
    /// and those have less by it who divide what such jobs leave.
    void fair_parts(const bool (&wants)[kJobs], const double (&busy)[kGpus], double (&parts)[kJobs]) const {
        bool grows[kJobs] = {};
        std::copy(wants, wants + kJobs, grows);
        double free[kGpus] = {};
        std::copy(busy, busy + kGpus, free);
        for (unsigned round = 0; round < kGpus; round++) {
            unsigned full = 0;
            double step = 1e9, weights[kGpus] = {};
            for (unsigned gpu = 0; gpu < kGpus; gpu++) {
                for (unsigned job = 0; job < kJobs; job++)
                    weights[gpu] += grows[job] && has(job, gpu) ? weight[job] : 0;
                if (weights[gpu] > 0 && free[gpu] / weights[gpu] < step) {
                    step = free[gpu] / weights[gpu];
                    full = gpu;
                }
            }
            for (unsigned gpu = 0; gpu < kGpus; gpu++)
                free[gpu] -= step * weights[gpu];
            for (unsigned job = 0; job < kJobs; job++) {
                parts[job] += grows[job] ? step * weight[job] : 0;
                grows[job] = grows[job] && !has(job, full);
            }
        }
    }

    /// Longest wait of a job that had this credit on each GPU when it began to wait, if nobody stands still or ends: it
    /// has all its GPUs at once, so that the one for which it waits for longer counts.
    uint64_t longest_wait(unsigned job, const int64_t (&credit)[kGpus]) const {
        uint64_t longest = 0;
        for (unsigned gpu = 0; gpu < kGpus; gpu++)
            if (has(job, gpu))
                longest = std::max(longest, rounds(job, gpu, credit[gpu]) * longest_round(gpu) + ahead(job, gpu));
        return longest;
    }

    /// And longer for each that does: its turn, a quantum until it is passed by, and one until the next in the queue
    /// looks.
    uint64_t held_up() const {
        const auto [least, most] = std::minmax_element(weight, weight + kJobs);
        return quantum * *most / *least + 2 * quantum;
    }

    /// Part of the time for which a GPU is busy at least, if a job wants it that uses no other one: at the end of each
    /// turn it may stand idle while a queue of the other GPU's runs out.
    double least_busy() const { return static_cast<double>(quantum) / static_cast<double>(quantum + longest_queue); }

    uint32_t weight[kJobs] = {};
    uint64_t quantum = lease::Terms{}.quantum;
    uint64_t longest_queue = 0;

  private:
    // With its share of each round it pays what it had overdrawn when it began to wait. When its turn comes nothing of
    // that is left, so the debt at that moment says nothing about its wait.
    uint64_t rounds(unsigned job, unsigned gpu, int64_t credit) const {
        const auto debt = static_cast<uint64_t>(std::max<int64_t>(-credit, 0));
        return 1 + debt / share_at(job, weights_of(gpu).second);
    }

    // All the jobs' shares are a quantum for each of them, and each has its queue run out.
    uint64_t longest_round(unsigned gpu) const {
        uint64_t jobs = 0;
        for (unsigned job = 0; job < kJobs; job++)
            jobs += has(job, gpu);
        return jobs * (quantum + longest_queue);
    }

    // Jobs of both GPUs may come with what earlier rounds gave them.
    uint64_t ahead(unsigned job, unsigned gpu) const {
        uint64_t time = 0;
        for (unsigned other = 0; other < kJobs; other++)
            if (other != job && has(other, gpu) && gpus_of(other) != lease::bit(gpu))
                time += (lease::kMostAhead - 1) * share_at(other, weights_of(gpu).first);
        return time;
    }

    // Its share of a round, if this is the mean weight of those who want the GPU.
    uint64_t share_at(unsigned job, uint32_t mean) const { return quantum * weight[job] / mean; }

    // The least and the greatest of a GPU's jobs, between which the mean of those who want it lies.
    std::pair<uint32_t, uint32_t> weights_of(unsigned gpu) const {
        std::pair<uint32_t, uint32_t> found = {lease::kWhole, 0};
        for (unsigned job = 0; job < kJobs; job++)
            if (has(job, gpu))
                found = {std::min(found.first, weight[job]), std::max(found.second, weight[job])};
        return found;
    }
};

}  // namespace cuslice::tests
