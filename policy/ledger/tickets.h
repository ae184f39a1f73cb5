// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/layout.h"
#include "policy/ledger/presence.h"

// Tickets of processes that wait for memory of a GPU, in their user's file.
namespace cuslice::ledger {

/// Notes in a file that the request of this number is granted, before it is. With the header's lock.
void note_granted(Header& header, uint64_t order);
/// Notes what the other file has noted, so that who passed whom in the queue stays known. With the header's lock.
void merge_granted(Header& header, const Header& other);
/// A new request's number. With the header's lock.
uint64_t next_order(Header& header);

/// The memory that this process waits for, and its ticket in the file. Not thread-safe: its owner has a lock.
class OwnTicket {
  public:
    bool waits() const { return waits_; }
    /// True if it has a ticket, and thereby a place in the queue.
    bool placed() const { return placed_; }
    bool is_at(uint32_t index) const { return placed_ && index == index_; }
    /// This process's number in the queue. A process that has no ticket is behind all others.
    uint64_t order() const { return placed_ ? order_ : ~0ull; }
    uint64_t bytes() const { return bytes_; }

    /// Waits for so many bytes from now on. `command`: as in Request.
    void wait_for(uint64_t bytes, const char* command);
    /// With the header's lock: a ticket for this process if it waits and has none, and a note in it that it still
    /// waits.
    void take(File& file, const Presence& presence);
    void drop(File& file);
    /// The file is another one now, in which it has no ticket yet.
    void lose() { placed_ = false; }
    /// Nothing is to be kept for it here. `file`: null where there is none.
    void step_aside(File* file, bool aside);
    /// Its process has another presence now.
    void show_presence(File& file, const Presence& presence) const;

  private:
    bool waits_ = false, placed_ = false;
    bool aside_ = false;
    uint32_t index_ = 0;
    uint64_t bytes_ = 0, since_ = 0, order_ = 0;  // order: 0 until it has had a ticket
    char command_[sizeof Ticket::command] = {};
};

}  // namespace cuslice::ledger
