// SPDX-License-Identifier: Apache-2.0
// Bytes whose end is the end of what can be read: a load behind them ends the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace cuslice::tests {

class AtTheEdge {
  public:
    explicit AtTheEdge(const std::string& bytes) : size_(bytes.size()) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        readable_ = (size_ + page - 1) / page * page;
        memory_ = mmap(nullptr, readable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory_ != MAP_FAILED);
        mapped_ = readable_ + page;
        REQUIRE(mprotect(static_cast<char*>(memory_) + readable_, page, PROT_NONE) == 0);
        std::memcpy(begin(), bytes.data(), size_);
    }
    ~AtTheEdge() { munmap(memory_, mapped_); }
    AtTheEdge(const AtTheEdge&) = delete;
    AtTheEdge& operator=(const AtTheEdge&) = delete;

    char* begin() const { return static_cast<char*>(memory_) + readable_ - size_; }
    size_t size() const { return size_; }

  private:
    size_t size_, readable_ = 0, mapped_ = 0;
    void* memory_ = nullptr;
};

}  // namespace cuslice::tests
