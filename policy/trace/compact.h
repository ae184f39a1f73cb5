// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/trace/file.h"
#include "policy/trace/record.h"
#include "policy/trace/row.h"

namespace cuslice::trace {

/// Numbers for pairs of a thread and a stream. Not thread-safe.
class Sources {
  public:
    static constexpr uint16_t kMost = 0xfffe;
    /// The pair's number, from 1, and whether it is new; 0: there are no more, or no memory.
    uint16_t number(uint32_t thread, uint64_t stream, bool* is_new);

  private:
    struct Entry {
        uint64_t stream;
        uint32_t thread;
        uint16_t number;  // 0: none is here
    };
    static constexpr size_t kFirst = 256;
    Entry* find(uint32_t thread, uint64_t stream) const;
    bool grow();

    Entry* entries_ = nullptr;
    size_t capacity_ = 0;  // a power of two
    uint16_t count_ = 0;
};

/// Writes rows as compact records, with what they are numbers for. Thread-safe; a row whose GPU, limit, thread and
/// stream are known takes no lock.
class Compact {
  public:
    File::Appended append(File& file, const Row& row, int& error);

  private:
    // Records that belong together in the file: an event, and what holds for it alone before it.
    class Batch {
      public:
        explicit Batch(Record* records) : records_(records) {}
        void add(const Record& record) { records_[count_++] = record; }
        void add_pieces(Kind kind, std::string_view text);
        std::string_view view() const { return {reinterpret_cast<const char*>(records_), count_ * sizeof(Record)}; }

      private:
        Record* records_;
        size_t count_ = 0;
    };
    static constexpr size_t kMostPlain = 5;  // records of an event without a stack
    static constexpr uint8_t kMostPlaces = 254, kAnyPlace = 255;
    static constexpr uint16_t kAnySource = 0xffff;
    static constexpr unsigned kGpus = 64;

    File::Appended append_batch(File& file, const Row& row, Batch batch, int& error);
    bool add_clock(Batch& batch, uint64_t time) const;
    File::Appended place_of(File& file, const Row& row, Batch& batch, uint8_t& place, int& error);
    File::Appended new_place(File& file, const Row& row, Batch& batch, uint8_t& place, int& error);
    File::Appended define_name(File& file, const Row& row, int& error) CUSLICE_REQUIRES(mutex_);
    File::Appended source_of(File& file, const Row& row, Batch& batch, uint16_t& source, int& error);
    uint32_t number();

    // Its number tells what a thread remembers of this recording from what it remembers of another one.
    std::atomic<uint32_t> number_{0};
    std::atomic<uint64_t> clock_{~0ull};  // the stretch of time of which the file has a record
    std::atomic<uint8_t> last_[kGpus] = {};
    std::atomic<uint64_t> limits_[256] = {};  // by place
    Mutex mutex_{LockRank::record_numbers};   // over what is given numbers
    uint8_t gpus_[256] CUSLICE_GUARDED_BY(mutex_) = {};
    bool named_[kGpus] CUSLICE_GUARDED_BY(mutex_) = {};
    uint8_t places_ CUSLICE_GUARDED_BY(mutex_) = 0;
    Sources sources_ CUSLICE_GUARDED_BY(mutex_);
};

}  // namespace cuslice::trace
