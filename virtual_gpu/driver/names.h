// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuslice {

// Names, each with its zero, one after the other, and where each begins: pointers to them would be an array that the
// loader fills in, with a page of its own in each process for every 512.
template <size_t kBytes, size_t kCount>
class Names {
  public:
    consteval explicit Names(const std::array<std::string_view, kCount>& all) {
        static_assert(kBytes < 65536);
        size_t at = 0;
        for (size_t i = 0; i < kCount; i++) {
            begin_[i] = static_cast<uint16_t>(at);
            for (const char letter : all[i])
                text_[at++] = letter;
            text_[at++] = 0;
        }
    }
    constexpr const char* operator[](size_t i) const { return text_ + begin_[i]; }

  private:
    char text_[kBytes] = {};
    uint16_t begin_[kCount] = {};
};

// Packs the array of string views that `all` returns.
template <auto all>
consteval auto names() {
    constexpr auto views = all();
    constexpr size_t bytes = [=] {
        size_t sum = 0;
        for (const std::string_view name : views)
            sum += name.size() + 1;
        return sum;
    }();
    return Names<bytes, views.size()>(views);
}

}  // namespace cuslice
