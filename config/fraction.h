// SPDX-License-Identifier: Apache-2.0
// Fractions of a GPU as people write them: "0.4", "40%", "1".
#pragma once

#include <cstdint>
#include <string_view>

#include "config/text.h"

namespace cuslice {

/// A share of a GPU's memory, kept as a whole number of parts in 10^9 so that every process computes the same bytes.
class Fraction {
  public:
    static constexpr uint64_t kWhole = 1'000'000'000;

    Fraction() = default;
    /// 0 < parts ≤ kWhole.
    explicit constexpr Fraction(uint64_t parts) : parts_(parts) {}

    constexpr uint64_t parts() const { return parts_; }
    /// The bytes that this is of `total` bytes, rounded down; exact for every total.
    constexpr uint64_t bytes_of(uint64_t total) const { return scale(parts_, total, kWhole); }

  private:
    uint64_t parts_ = kWhole;
};

/// Reads a fraction: more than 0, at most 1, or a percentage; digits after the ninth are dropped. Returns false and
/// says why for anything else, also for more than 1: memory beyond the GPU's own (managed memory paged to the host) is
/// not handed out as a slice. Pure; safe from any thread.
bool parse_fraction(std::string_view text, Fraction& fraction, Reason& why);

}  // namespace cuslice
