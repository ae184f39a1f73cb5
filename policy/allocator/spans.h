// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/allocator/address_map.h"
#include "policy/allocator/segments.h"
#include "policy/allocator/span.h"

namespace cuslice {

// Small blocks of every class that no thread has in its magazines, cut from spans, which come from the segments and go
// back there once all of their blocks are here. Not thread-safe.
class Spans {
  public:
    explicit Spans(Segments& segments) : segments_(segments) {}

    // Before any other use.
    void open(AddressMap& map) { map_ = &map; }

    // Takes up to `most` free blocks of a class.
    unsigned take(unsigned size_class, SmallBlock* into, unsigned most);

    // Makes another span of a class. False if the segments have no room for it.
    bool make(unsigned size_class, BlockOwner* owner, Segments::Place place);

    // A block that is nobody's.
    void give_back(uint64_t address);

    // Gives back to the segments the spans that are kept in reserve. Returns whether there was any.
    bool trim();

    // Its context is gone, and all that was in it: first each span, then the lists.
    void forget(Span* span);
    void forget_lists();

    // Bytes of all spans, and of them those that are neither a program's nor in a magazine.
    uint64_t bytes() const { return bytes_; }
    uint64_t free_bytes() const { return free_bytes_; }
    size_t memory() const { return memory_; }

  private:
    Span* take_record(unsigned size_class);
    static void fill(Span& span);
    void release(Span* span);
    void link(Span* span);
    void unlink(Span* span);

    Segments& segments_;
    AddressMap* map_ = nullptr;
    Span* with_free_[SizeClass::kCount] = {};  // the fullest are not sought: the one used last is first
    Span* records_[SizeClass::kCount] = {};
    char* fresh_ = nullptr;  // memory for records
    size_t fresh_left_ = 0;
    uint64_t bytes_ = 0, free_bytes_ = 0;
    size_t memory_ = 0;
};

}  // namespace cuslice
