// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

namespace cuslice::model {

// The streams of all contexts: what they have been given, and how far each has come. They get on only where somebody
// waits for them or lets them, so that what was freed has work that is still to come.
//
// Everything is relaxed, here and in Shadow: the checks must not put into order what only the allocator should.
class Work {
  public:
    static constexpr unsigned kStreams = 6;
    // A point in the work of each stream; 0 is before all of it.
    using Points = std::array<uint32_t, kStreams>;

    uint32_t submit(unsigned stream) { return given_[stream].fetch_add(1, std::memory_order_relaxed) + 1; }
    // All that the streams of a mask have been given.
    Points given(unsigned streams) const {
        Points points{};
        for (unsigned s = 0; s < kStreams; s++)
            if (streams >> s & 1)
                points[s] = given_[s].load(std::memory_order_relaxed);
        return points;
    }
    bool past(const Points& points) const {
        for (unsigned s = 0; s < kStreams; s++)
            if (done_[s].load(std::memory_order_relaxed) < points[s])
                return false;
        return true;
    }
    void finish(const Points& points) {
        for (unsigned s = 0; s < kStreams; s++)
            advance(s, points[s]);
    }
    void advance(unsigned stream, uint32_t to) {
        uint32_t done = done_[stream].load(std::memory_order_relaxed);
        while (done < to && !done_[stream].compare_exchange_weak(done, to, std::memory_order_relaxed))
            continue;
    }
    // So much of what it has been given and not done, in hundredths.
    void advance_by(unsigned stream, uint64_t percent) {
        const uint32_t done = done_[stream].load(std::memory_order_relaxed);
        const uint32_t given = given_[stream].load(std::memory_order_relaxed);
        if (given > done)
            advance(stream, static_cast<uint32_t>(done + (given - done) * percent / 100));
    }

  private:
    std::array<std::atomic<uint32_t>, kStreams> given_{}, done_{};
};

}  // namespace cuslice::model
