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
    constexpr std::uint64_t kAddresses = 2000;
    const auto table = std::make_unique<AllocationTable>();
    tests::Meeting begin(2), end(2);
    std::atomic<std::uint64_t> found{0};
    int wrong = 0;
    tests::on_threads(2, [&](unsigned thread) {
        for (int round = 0; round < 300; ++round) {
            if (thread == 0)
                for (std::uint64_t i = 1; i <= kAddresses; ++i) table->insert({i * 512, 512, 1, 0, 0});
            begin.wait();
            for (std::uint64_t i = 1; i <= kAddresses; ++i) found.fetch_add(table->erase(i * 512).address == i * 512);
            end.wait();
            if (thread == 0) wrong += found.exchange(0) != kAddresses;
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("threads that grow the table together keep every record") {
    constexpr unsigned kThreads = 4;
    constexpr std::uint64_t kEach = 20'000;
    const auto table = std::make_unique<AllocationTable>();
    std::atomic<int> wrong{0};
    tests::on_threads(kThreads, [&](unsigned thread) {
        const auto address = [&](std::uint64_t i) { return 512 * (1 + i * kThreads + thread); };
        const auto context = static_cast<std::uint16_t>(thread + 1);
        for (std::uint64_t i = 0; i < kEach; ++i)
            if (!table->insert({address(i), i * 512, context, static_cast<std::uint8_t>(thread), 0})) wrong++;
        for (std::uint64_t i = 0; i < kEach; i += 2) {
            const Allocation erased = table->erase(address(i));
            if (erased.bytes != i * 512 || erased.context != context || erased.gpu != thread) wrong++;
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

}  // namespace
}  // namespace cuslice
