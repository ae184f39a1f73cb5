// SPDX-License-Identifier: Apache-2.0
// Arrays of a program's, handed to the driver as a copy.
#include "virtual_gpu/split/physical_copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"

using namespace cuslice;

namespace {

/// So many numbers, counted from 1, whose last one lies just before memory that can't be read.
class AtTheEdge {
  public:
    explicit AtTheEdge(size_t count) {
        const auto page = static_cast<size_t>(getpagesize());
        void* const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(pages != MAP_FAILED);
        REQUIRE(mprotect(static_cast<char*>(pages) + page, page, PROT_NONE) == 0);
        pages_ = {static_cast<char*>(pages), 2 * page};
        items_ = reinterpret_cast<int*>(static_cast<char*>(pages) + page) - count;
        for (size_t i = 0; i < count; i++)
            items_[i] = static_cast<int>(i + 1);
    }
    ~AtTheEdge() { munmap(pages_.data(), pages_.size()); }
    AtTheEdge(const AtTheEdge&) = delete;
    AtTheEdge& operator=(const AtTheEdge&) = delete;
    const int* items() const { return items_; }

  private:
    std::span<char> pages_;
    int* items_ = nullptr;
};

}  // namespace

TEST_CASE("the driver is given a translated copy, and its answer is the program's") {
    const std::vector<int> list{1, 2, 3};
    std::vector<int> seen;
    const CUresult result = with_copy(
        list.data(), list.size(), [](int& one) { one += 10; },
        [&](int* copy) {
            seen.assign(copy, copy + 3);
            return CUDA_ERROR_INVALID_DEVICE;
        });
    CHECK(result == CUDA_ERROR_INVALID_DEVICE);
    CHECK(seen == std::vector<int>{11, 12, 13});
    CHECK(list == std::vector<int>{1, 2, 3});
}

TEST_CASE("no more of an array is read than it has") {
    for (const size_t count : {1u, 5u, 1000u}) {
        const AtTheEdge array(count);
        PhysicalCopy<int> copy(array.items(), count);
        REQUIRE(copy.complete());
        REQUIRE(copy.end() - copy.begin() == static_cast<ptrdiff_t>(count));
        CHECK(copy.get()[count - 1] == static_cast<int>(count));
    }
}

TEST_CASE("no array stays none, and an empty one has nothing to read") {
    CHECK(PhysicalCopy<int>(nullptr, 3).get() == nullptr);
    CHECK(PhysicalCopy<int>(nullptr, 3).complete());
    const AtTheEdge nothing(0);
    PhysicalCopy<int> copy(nothing.items(), 0);
    CHECK(copy.complete());
    CHECK(copy.begin() == copy.end());
}

TEST_CASE("an array that there is no memory to copy isn't shown to the driver, and is as it was") {
    const std::vector<int> list{1, 2, 3};
    bool asked = false;
    const tests::NoMemory none;
    const CUresult result = with_copy(
        list.data(), list.size(), [](int& one) { one = 77; },
        [&](int*) {
            asked = true;
            return CUDA_SUCCESS;
        });
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_FALSE(asked);
    CHECK(list == std::vector<int>{1, 2, 3});
}
