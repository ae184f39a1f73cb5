// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/tickets.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/queue.h"

namespace cuslice::ledger {

void note_granted(Header& header, uint64_t order) {
    Granted granted;
    granted.note_all(header.granted, now_realtime());
    granted.note(order);
    std::copy(std::begin(granted.orders()), std::end(granted.orders()), header.granted);
}

void merge_granted(Header& header, const Header& other) {
    Granted granted;
    granted.note_all(header.granted, now_realtime());
    granted.note_all(other.granted, now_realtime());
    std::copy(std::begin(granted.orders()), std::end(granted.orders()), header.granted);
}

// The clock, by which the numbers of several users compare; and later than all before it in this file, also where the
// clock was set back. A file that has a number far ahead of it was written over.
uint64_t next_order(Header& header) {
    uint64_t& last = header.last_order;
    const uint64_t now = now_realtime();
    last = last >= now && last - now < kMaxAhead / 2 ? last + 1 : now;
    return last;
}

void OwnTicket::wait_for(uint64_t bytes, const char* command) {
    waits_ = true;
    bytes_ = bytes;
    since_ = now_realtime();
    if (command)
        snprintf(command_, sizeof command_, "%s", command);
    else
        command_of_this_process(command_, sizeof command_);
}

void OwnTicket::take(File& file, const Presence& presence) {
    if (waits_ && !placed_)
        for (uint32_t i = 0; i < kTickets && !placed_; i++) {
            if (file.tickets[i].state.load() == TicketState::waiting)
                continue;
            index_ = i;
            placed_ = true;
            if (!order_)
                order_ = next_order(file.header);
        }
    if (!placed_)
        return;
    // All of it each time: what is in the file may have been written over.
    Ticket& ticket = file.tickets[index_];
    const ProcessIdentity self = this_process();
    ticket.pid = self.pid;
    ticket.pid_namespace = self.pid_namespace;
    ticket.start_time = self.start_time;
    ticket.since = since_;
    ticket.order = order_;
    ticket.bytes = bytes_;
    ticket.looked.store(now_realtime());
    ticket.aside.store(aside_);
    ticket.presence.store(presence.id());
    ticket.lock = presence.kind();
    memcpy(ticket.command, command_, sizeof ticket.command);
    ticket.state.store(TicketState::waiting);
}

void OwnTicket::drop(File& file) {
    if (!placed_)
        return;
    file.tickets[index_].state.store(TicketState::free);
    placed_ = false;
}

void OwnTicket::step_aside(File* file, bool aside) {
    aside_ = aside;
    if (placed_)
        file->tickets[index_].aside.store(aside);
}

void OwnTicket::show_presence(File& file, const Presence& presence) const {
    if (placed_)
        file.tickets[index_].presence.store(presence.id());
}

}  // namespace cuslice::ledger
