#pragma once
#include <cstddef>
#include <cstdint>

namespace cuslice {

// Names, each with its zero, one after the other, and where each begins: pointers to them would be an array that the
// loader fills in, with a page of its own in each process for every 512.
template <std::size_t Count, std::size_t Bytes>
class Names {
  public:
    consteval explicit Names(const char (&all)[Bytes]) {
        static_assert(Bytes < 65536);
        std::size_t at = 0;
        for (std::uint16_t& begin : begin_) {
            begin = static_cast<std::uint16_t>(at);
            do {
                text_[at] = all[at];
            } while (all[at++]);
        }
        if (at + 1 != Bytes) __builtin_unreachable();  // more names, or fewer: that is no constant
    }
    constexpr const char* operator[](std::size_t i) const { return text_ + begin_[i]; }

  private:
    char text_[Bytes] = {};
    std::uint16_t begin_[Count] = {};
};

template <std::size_t Count, std::size_t Bytes>
consteval Names<Count, Bytes> names(const char (&all)[Bytes]) {
    return Names<Count, Bytes>(all);
}

}  // namespace cuslice
