// SPDX-License-Identifier: Apache-2.0
// A text that lies in its row of a constant table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuslice {

/// A text of at most Capacity bytes, made by the compiler. It has no pointer, so that the loader relocates nothing as
/// the library starts.
template <size_t Capacity>
class RowText {
  public:
    constexpr RowText() = default;
    template <size_t Size>
    consteval RowText(const char (&text)[Size]) : size_(Size - 1) {
        static_assert(Size - 1 <= Capacity, "the text is longer than its place in the row");
        for (size_t i = 0; i < size_; ++i)
            bytes_[i] = text[i];
    }

    constexpr std::string_view view() const { return {bytes_, size_}; }
    constexpr operator std::string_view() const { return view(); }
    constexpr bool empty() const { return size_ == 0; }

    friend constexpr bool operator==(const RowText& left, std::string_view right) { return left.view() == right; }
    template <typename Stream>
    friend Stream& operator<<(Stream& stream, const RowText& text) {
        stream << text.view();
        return stream;
    }

  protected:
    char bytes_[Capacity] = {};
    uint8_t size_ = 0;
};

}  // namespace cuslice
