// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/queue.h"

#include <string.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace cuslice::ledger {

void Granted::note(uint64_t order) {
    if (order <= orders_[0])
        return;
    uint64_t* const later = std::lower_bound(orders_ + 1, std::end(orders_), order);
    *std::move(orders_ + 1, later, orders_) = order;
}

void Granted::note_all(const uint64_t (&orders)[kLatest], uint64_t now) {
    for (const uint64_t order : orders)
        if (order <= now || order - now < kMaxAhead)
            note(order);
}

unsigned Granted::past(uint64_t order) const {
    return static_cast<unsigned>(std::end(orders_) - std::upper_bound(std::begin(orders_), std::end(orders_), order));
}

void Queue::add(const Waiter& waiter) {
    total_++;
    if (waiter.order >= order_)
        return;
    ahead_++;
    if (waiter.steps_back || !waiter.bytes)
        return;
    const auto is_before = [](const Waiter& one, const Waiter& other) { return one.order < other.order; };
    Waiter* const later = std::upper_bound(front_, front_ + count_, waiter, is_before);
    if (later == std::end(front_))
        return;
    count_ = std::min(count_ + 1, kMax);
    std::move_backward(later, front_ + count_ - 1, front_ + count_);
    *later = waiter;
}

void Queue::drop(unsigned user, uint64_t order) {
    const auto is_its = [&](const Waiter& waiter) { return waiter.order == order && waiter.user == user; };
    Waiter* const end = front_ + count_;
    Waiter* const its = std::find_if(front_, end, is_its);
    if (its == end)
        return;
    std::move(its + 1, end, its);
    count_--;
    ahead_--;
    total_--;
}

uint64_t Queue::room(uint64_t left, uint64_t possible, const Waiter** kept_for) const {
    *kept_for = nullptr;
    for (unsigned i = 0; i < count_ && left; i++) {
        const Waiter& waiter = front_[i];
        if (waiter.bytes > possible)
            continue;
        if (waiter.bytes > left && granted_.past(waiter.order) < kMaxPast)
            continue;
        left -= std::min(waiter.bytes, left);
        if (!*kept_for)
            *kept_for = &waiter;
    }
    return left;
}

bool waits(const Ticket& ticket, const UserFolder& where) {
    return ticket.state.load() == TicketState::waiting && lives(ticket, where);
}

Waiter waiter_of(const Ticket& ticket, unsigned user, uint64_t now) {
    Waiter waiter;
    waiter.user = user;
    waiter.pid = ticket.pid;
    waiter.pid_namespace = ticket.pid_namespace;
    waiter.start_time = ticket.start_time;
    waiter.since = ticket.since;
    waiter.order = ticket.order;
    waiter.bytes = ticket.bytes;
    const uint64_t looked = ticket.looked.load(), since = now > looked ? now - looked : looked - now;
    waiter.steps_back = since > kLooksWithin || ticket.aside.load() != 0;
    memcpy(waiter.command, ticket.command, sizeof waiter.command);
    waiter.command[sizeof waiter.command - 1] = '\0';
    return waiter;
}

}  // namespace cuslice::ledger
