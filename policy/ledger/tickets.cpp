// The tickets of processes that wait, in this user's file.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/ledger.h"

namespace cuslice::ledger {

void Ledger::note_granted(Header& header, std::uint64_t order) {
    Granted granted;
    granted.note_all(header.granted, now_realtime());
    granted.note(order);
    std::copy(std::begin(granted.orders()), std::end(granted.orders()), header.granted);
}

// The clock, by which the numbers of several users compare; and later than all before it in this file, also where the
// clock was set back. A file that has a number far ahead of it was written over.
std::uint64_t Ledger::next_order() {
    std::uint64_t& last = open_.file->header.last_order;
    const std::uint64_t now = now_realtime();
    last = last >= now && last - now < kMaxAhead / 2 ? last + 1 : now;
    return last;
}

bool Ledger::queued() const {
    const DisablingLockGuard guard(mutex_);
    return waiting_.placed;
}

// This process's number in the queue. A process that does not wait is behind all others.
std::uint64_t Ledger::own_order() const {
    const DisablingLockGuard guard(mutex_);
    return waiting_.placed ? waiting_.order : ~0ull;
}

// With the header's lock: a ticket for this process if it waits and has none, and a note in it that it still waits.
void Ledger::take_ticket() {
    File& file = *open_.file;
    if (waiting_.waits && !waiting_.placed)
        for (std::uint32_t i = 0; i < kTickets && !waiting_.placed; i++) {
            if (file.tickets[i].state.load() == TicketState::waiting) continue;
            waiting_.index = i;
            waiting_.placed = true;
            if (!waiting_.order) waiting_.order = next_order();
        }
    if (!waiting_.placed) return;
    // All of it each time: what is in the file may have been written over.
    Ticket& ticket = file.tickets[waiting_.index];
    const ProcessIdentity self = this_process();
    ticket.pid = self.pid;
    ticket.pid_namespace = self.pid_namespace;
    ticket.start_time = self.start_time;
    ticket.since = waiting_.since;
    ticket.order = waiting_.order;
    ticket.bytes = waiting_.bytes;
    ticket.looked.store(now_realtime());
    ticket.aside.store(waiting_.aside);
    ticket.presence.store(presence_.id());
    ticket.lock = presence_.kind();
    memcpy(ticket.command, waiting_.command, sizeof ticket.command);
    ticket.state.store(TicketState::waiting);
}

void Ledger::drop_ticket() {
    if (!waiting_.placed) return;
    open_.file->tickets[waiting_.index].state.store(TicketState::free);
    waiting_.placed = false;
}

void Ledger::take_back_tickets() {
    File& file = *open_.file;
    for (std::uint32_t i = 0; i < kTickets; i++) {
        Ticket& ticket = file.tickets[i];
        if (ticket.state.load() == TicketState::free || (waiting_.placed && i == waiting_.index)) continue;
        if (waits(ticket, where_)) continue;
        ticket.state.store(TicketState::free);
        remove_presence(ticket.presence.load());
    }
}

void Ledger::queue_up(std::uint64_t bytes, const char* command) {
    {
        const DisablingLockGuard guard(mutex_);
        if (!open_.there() || waiting_.waits) return;
    }
    const Locked locked(*this, Deadline(kPatience));
    waiting_.waits = true;
    waiting_.bytes = bytes;
    waiting_.since = now_realtime();
    if (command)
        snprintf(waiting_.command, sizeof waiting_.command, "%s", command);
    else
        command_of_this_process(waiting_.command, sizeof waiting_.command);
    if (!locked) return;
    take_back_dead_locked();
    take_ticket();
}

// The ticket is this process's alone, so that no lock is needed but that of its threads.
void Ledger::leave_queue() {
    const DisablingLockGuard guard(mutex_);
    if (open_.there()) drop_ticket();
    waiting_ = {};
}

void Ledger::step_aside(bool aside) {
    const DisablingLockGuard guard(mutex_);
    waiting_.aside = aside;
    if (waiting_.placed) open_.file->tickets[waiting_.index].aside.store(aside);
}

}  // namespace cuslice::ledger
