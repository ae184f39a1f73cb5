// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

namespace cuslice {

// Sizes up to kMax are rounded up to one of kCount: every unit up to 4 KiB, then four to a doubling, so that no more
// than a fifth of a block is lost. Blocks of one class are cut from spans, which hold at least kMinBlocks.
class SizeClass {
  public:
    static constexpr uint64_t kUnit = 512;          // bytes; what drivers round to
    static constexpr uint64_t kMax = 64 << 10;      // bytes
    static constexpr uint64_t kGranule = 64 << 10;  // bytes; spans are whole granules on a granule's boundary
    static constexpr unsigned kCount = 24;
    static constexpr unsigned kMinBlocks = 8;

    // Rounds sizes above kMax up to whole units. A size that no driver has stays as it is.
    static constexpr uint64_t rounded(uint64_t bytes) {
        return bytes > ~0ull - kUnit ? bytes : (bytes + kUnit - 1) / kUnit * kUnit;
    }
    // 0 < bytes <= kMax
    static constexpr unsigned of(uint64_t bytes) { return kClassOf[(bytes + kUnit - 1) / kUnit]; }
    static constexpr uint32_t units(unsigned size_class) { return kUnits[size_class]; }
    static constexpr uint64_t bytes(unsigned size_class) { return kUnits[size_class] * kUnit; }
    static constexpr uint64_t span_bytes(unsigned size_class) {
        const uint64_t least = bytes(size_class) * kMinBlocks;
        return (least + kGranule - 1) / kGranule * kGranule;
    }
    static constexpr uint32_t blocks(unsigned size_class) {
        return static_cast<uint32_t>(span_bytes(size_class) / bytes(size_class));
    }
    // Finds the block of a span at an offset by a multiplication with the class's reciprocal.
    static constexpr uint32_t reciprocal(unsigned size_class) { return kReciprocal[size_class]; }
    static constexpr uint32_t index(uint32_t reciprocal, uint32_t offset_units) {
        return offset_units * reciprocal >> kShift;
    }

  private:
    static constexpr unsigned kShift = 17;
    static constexpr std::array<uint32_t, kCount> kUnits = {1,  2,  3,  4,  5,  6,  7,  8,  10, 12, 14,  16,
                                                            20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128};
    static constexpr auto kClassOf = [] {
        std::array<uint8_t, kMax / kUnit + 1> table{};
        for (unsigned units = 1, c = 0; units < table.size(); units++) {
            if (units > kUnits[c])
                c++;
            table[units] = static_cast<uint8_t>(c);
        }
        return table;
    }();
    static constexpr auto kReciprocal = [] {
        std::array<uint32_t, kCount> table{};
        for (unsigned c = 0; c < kCount; c++)
            table[c] = ((1u << kShift) + kUnits[c] - 1) / kUnits[c];
        return table;
    }();
};

// For every offset in every span.
static_assert([] {
    for (unsigned c = 0; c < SizeClass::kCount; c++)
        for (uint32_t offset = 0; offset < SizeClass::span_bytes(c) / SizeClass::kUnit; offset++)
            if (SizeClass::index(SizeClass::reciprocal(c), offset) != offset / SizeClass::units(c))
                return false;
    return true;
}());

}  // namespace cuslice
