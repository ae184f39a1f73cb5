// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/heaps.h"

#include <atomic>
#include <random>

#include "tests/bench/on_threads.h"

namespace cuslice::bench {

namespace {

// One thread allocates and hands on, the other frees (xmalloc-test).
double producer_and_consumer(const TwoDrivers& drivers, const Driver& driver) {
    constexpr unsigned kSlots = 4096, kBlocks = 200'000;
    std::vector<std::atomic<CUdeviceptr>> slots(kSlots);
    const auto work = [&](unsigned thread) {
        for (unsigned i = 0; i < kBlocks; i++) {
            std::atomic<CUdeviceptr>& slot = slots[i % kSlots];
            if (thread == 0) {
                while (slot.load(std::memory_order_relaxed))
                    std::this_thread::yield();
                slot.store(take(driver, 512 + i % 64 * 512), std::memory_order_release);
            } else {
                CUdeviceptr block;
                while (!(block = slot.load(std::memory_order_acquire)))
                    std::this_thread::yield();
                slot.store(0, std::memory_order_release);
                must(driver.free(block), "cuMemFree");
            }
        }
    };
    return on_threads(drivers, driver, 2, work) / kBlocks;
}

// Each thread replaces random ones of its blocks, and hands all of them to the next thread now and then (larson).
double larson(const TwoDrivers& drivers, const Driver& driver) {
    constexpr unsigned kThreads = 2, kBlocks = 1000, kTurns = 10, kReplaced = 5000;
    std::vector<std::vector<CUdeviceptr>> sets(kThreads, std::vector<CUdeviceptr>(kBlocks));
    std::atomic<unsigned> arrived{0};
    for (auto& set : sets)
        for (CUdeviceptr& block : set)
            block = take(driver, 8192);
    const double took = on_threads(drivers, driver, kThreads, [&](unsigned thread) {
        std::mt19937_64 random(thread);
        for (unsigned turn = 0; turn < kTurns; turn++) {
            auto& set = sets[(thread + turn) % kThreads];
            for (unsigned i = 0; i < kReplaced; i++) {
                CUdeviceptr& block = set[random() % kBlocks];
                must(driver.free(block), "cuMemFree");
                block = take(driver, 512 + random() % 65'000);
            }
            arrived++;
            while (arrived.load() < kThreads * (turn + 1))
                std::this_thread::yield();
        }
    });
    for (auto& set : sets)
        for (const CUdeviceptr block : set)
            must(driver.free(block), "cuMemFree");
    return took / kTurns / kReplaced;
}

// Threads that come and go. Each takes blocks of which the small are many and the large are few, keeps some for as long
// as it lives, and exchanges some with whatever others have left in a common place, which outlives all of them
// (mstress).
double mstress(const TwoDrivers& drivers, const Driver& driver) {
    constexpr unsigned kThreads = 2, kGenerations = 10, kOperations = 5000, kCommon = 1000;
    std::vector<std::atomic<CUdeviceptr>> common(kCommon);
    const auto give_back = [&](CUdeviceptr block) {
        if (block)
            must(driver.free(block), "cuMemFree");
    };
    double took = 0;
    for (unsigned generation = 0; generation < kGenerations; generation++) {
        took += on_threads(drivers, driver, kThreads, [&](unsigned thread) {
            std::mt19937_64 random(generation * kThreads + thread);
            std::vector<CUdeviceptr> kept;
            for (unsigned i = 0; i < kOperations; i++) {
                const uint64_t dice = random();
                // Half as many of each doubling: 512 bytes to 1 MiB.
                const size_t bytes = 512ull << std::min(__builtin_ctzll(random() | 1ull << 11), 11);
                if (dice % 4 < 2) {
                    kept.push_back(take(driver, bytes));
                } else if (dice % 4 == 2 && !kept.empty()) {
                    std::swap(kept[dice / 4 % kept.size()], kept.back());
                    give_back(kept.back());
                    kept.pop_back();
                } else {
                    give_back(common[dice / 4 % kCommon].exchange(take(driver, bytes)));
                }
            }
            for (const CUdeviceptr block : kept)
                give_back(block);
        });
    }
    for (auto& block : common)
        give_back(block.load());
    return took / (kGenerations * kOperations);
}

}  // namespace

std::vector<Heap> heaps() {
    return {{"one thread allocates, another frees: a block", producer_and_consumer},
            {"larson, 2 threads, up to 64 KiB: a replacement of each", larson},
            {"mstress, 2 threads that come and go, up to 1 MiB: an operation of each", mstress}};
}

}  // namespace cuslice::bench
