// SPDX-License-Identifier: Apache-2.0
// Memory whose end is known: whoever reads beyond it crashes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace fake_test {

/// Bytes right before memory that nobody may touch.
class Guarded {
  public:
    Guarded() {
        page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        memory_ = static_cast<char*>(
            mmap(nullptr, kRoom + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        REQUIRE(mprotect(memory_ + kRoom, page_, PROT_NONE) == 0);
    }
    ~Guarded() { munmap(memory_, kRoom + page_); }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;
    const char* put(const std::string& bytes) {
        REQUIRE(bytes.size() <= kRoom);
        return static_cast<const char*>(std::memcpy(memory_ + kRoom - bytes.size(), bytes.data(), bytes.size()));
    }

  private:
    static constexpr size_t kRoom = 1 << 20;
    size_t page_ = 0;
    char* memory_ = nullptr;
};

}  // namespace fake_test
