// SPDX-License-Identifier: Apache-2.0
// AllocationTable from several threads at once.
#include <memory>
#include <random>
#include <vector>

#include "policy/budget/allocation_table.h"
#include "tests/catch.h"
#include "tests/policy/rounds.h"

namespace cuslice {
namespace {

void count(const Allocation&, void* argument) { ++*static_cast<int*>(argument); }

TEST_CASE("an address that two threads free belongs to one of them") {
    constexpr uint64_t kAddresses = 2000;
    const auto table = std::make_unique<AllocationTable>();
    tests::Meeting begin(2), end(2);
    std::atomic<uint64_t> found{0};
    int wrong = 0;
    tests::on_threads(2, [&](unsigned thread) {
        for (int round = 0; round < 300; ++round) {
            if (thread == 0)
                for (uint64_t i = 1; i <= kAddresses; ++i)
                    table->insert({i * 512, 512, 1, 0, 0});
            begin.wait();
            for (uint64_t i = 1; i <= kAddresses; ++i)
                found.fetch_add(table->erase(i * 512).address == i * 512);
            end.wait();
            if (thread == 0)
                wrong += found.exchange(0) != kAddresses;
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("threads that grow the table together keep every record") {
    constexpr unsigned kThreads = 4;
    constexpr uint64_t kEach = 20'000;
    const auto table = std::make_unique<AllocationTable>();
    std::atomic<int> wrong{0};
    tests::on_threads(kThreads, [&](unsigned thread) {
        const auto address = [&](uint64_t i) { return 512 * (1 + i * kThreads + thread); };
        const auto context = static_cast<uint16_t>(thread + 1);
        for (uint64_t i = 0; i < kEach; ++i)
            if (!table->insert({address(i), i * 512, context, static_cast<uint8_t>(thread), 0}))
                wrong++;
        for (uint64_t i = 0; i < kEach; i += 2) {
            const Allocation erased = table->erase(address(i));
            if (erased.bytes != i * 512 || erased.context != context || erased.gpu != thread)
                wrong++;
        }
        if (thread == 0)
            table->erase_context(
                1, [](const Allocation&, void*) {}, nullptr);
    });
    CHECK(wrong == 0);
    int left = 0;
    table->for_each(count, &left);
    CHECK(left == (kThreads - 1) * kEach / 2);
}

// As a driver hands addresses out: whoever has freed one and has not yet taken its record meets whoever has it next.
TEST_CASE("an address that goes from thread to thread keeps each one's record for who frees it") {
    constexpr int kTurns = 200'000;
    const uint64_t step = GENERATE(as<uint64_t>(), 512, 4096, 2 << 20);
    const auto table = std::make_unique<AllocationTable>();
    std::atomic<uint64_t> free_addresses[3];
    for (uint64_t i = 0; i < 3; ++i)
        free_addresses[i].store(0x40000000 + i * step);
    std::atomic<int> wrong{0};
    tests::on_threads(4, [&](unsigned thread) {
        for (int i = 0; i < kTurns; ++i) {
            std::atomic<uint64_t>& place = free_addresses[static_cast<unsigned>(i) % 3];
            const uint64_t address = place.exchange(0);
            if (!address)
                continue;
            if (!table->insert({address, 512, static_cast<uint16_t>(thread + 1), 0, 0}))
                wrong++;
            place.store(address);  // the driver's free
            if (table->erase(address).address != address)
                wrong++;
        }
    });
    CHECK(wrong == 0);
    int left = 0;
    table->for_each(count, &left);
    CHECK(left == 0);
}

TEST_CASE("a context that ends takes each of its records once, whoever frees them meanwhile") {
    constexpr uint64_t kAddresses = 3000;
    const auto table = std::make_unique<AllocationTable>();
    tests::Meeting begin(3), end(3);
    std::atomic<uint64_t> found{0};
    int wrong = 0;
    tests::on_threads(3, [&](unsigned thread) {
        for (int round = 0; round < 100; ++round) {
            if (thread == 0)
                for (uint64_t i = 1; i <= kAddresses; ++i)
                    table->insert({i * 512, 512, static_cast<uint16_t>(1 + i % 2), 0, 0});
            begin.wait();
            int ended = 0;
            if (thread < 2)
                table->erase_context(static_cast<uint16_t>(thread + 1), count, &ended);
            for (uint64_t i = 1; thread == 2 && i <= kAddresses; ++i)
                found.fetch_add(table->erase(i * 512).address == i * 512);
            found.fetch_add(static_cast<uint64_t>(ended));
            end.wait();
            if (thread == 0)
                wrong += found.exchange(0) != kAddresses;
        }
    });
    CHECK(wrong == 0);
}

}  // namespace
}  // namespace cuslice
