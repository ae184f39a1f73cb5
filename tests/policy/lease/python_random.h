// SPDX-License-Identifier: Apache-2.0
// The random numbers of Python's random.Random, so that a simulation in C++ draws what one in Python drew.
#pragma once

#include <cstdint>
#include <random>

namespace cuslice::tests {

class PythonRandom {
  public:
    explicit PythonRandom(uint32_t seed) {
        Seed words{seed};
        engine_ = std::mt19937(words);
    }
    /// From 0 to 1.
    double random() {
        const uint32_t high = static_cast<uint32_t>(engine_()) >> 5, low = static_cast<uint32_t>(engine_()) >> 6;
        constexpr double kLow = 67'108'864, kAll = 9'007'199'254'740'992;  // 2^26, 2^53
        return (high * kLow + low) / kAll;
    }
    double uniform(double from, double to) { return from + (to - from) * random(); }

  private:
    // The Mersenne Twister's init_by_array() for one word, as its authors describe it.
    struct Seed {
        using result_type = uint32_t;
        uint32_t word;
        template <typename Iterator>
        void generate(Iterator begin, Iterator end) const {
            const auto size = static_cast<uint32_t>(end - begin);
            begin[0] = 19650218;
            for (uint32_t i = 1; i < size; i++)
                begin[i] = 1812433253u * mixed(begin[i - 1]) + i;
            uint32_t at = 1;
            const auto advance = [&] {
                if (++at < size)
                    return;
                begin[0] = begin[size - 1];
                at = 1;
            };
            for (uint32_t i = 0; i < size; i++, advance())
                begin[at] = (begin[at] ^ mixed(begin[at - 1]) * 1664525u) + word;
            for (uint32_t i = 1; i < size; i++, advance())
                begin[at] = (begin[at] ^ mixed(begin[at - 1]) * 1566083941u) - at;
            begin[0] = 0x80000000;
        }
        static uint32_t mixed(uint64_t word) {
            const auto value = static_cast<uint32_t>(word);
            return value ^ value >> 30;
        }
    };

    std::mt19937 engine_;
};

}  // namespace cuslice::tests
