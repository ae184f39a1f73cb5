// SPDX-License-Identifier: Apache-2.0
// Numbers of requests, and the ticket of a process that waits.
#include "policy/ledger/tickets.h"

#include <cstring>
#include <memory>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/queue.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

struct Waits {
    Waits() { ticket.wait_for(5 * kGiB, "train"); }
    void take() { ticket.take(*file, self.presence); }
    const LedgerFolder folder;
    Living self{folder};
    std::unique_ptr<File> file = std::make_unique<File>();
    OwnTicket ticket;
};

}  // namespace

TEST_CASE("each request of a file has a later number, also where the clock was set back") {
    const uint64_t before = cuslice::now_realtime();
    Header header{};
    const uint64_t first = next_order(header);
    CHECK(first >= before);
    CHECK(next_order(header) > first);
    const uint64_t ahead = header.last_order += kMaxAhead / 4;
    CHECK(next_order(header) == ahead + 1);
}

TEST_CASE("a number far ahead of the clock was written over, and is not followed") {
    Header header{};
    header.last_order = ~0ull;
    CHECK(next_order(header) < cuslice::now_realtime() + kMaxAhead);
}

TEST_CASE("a grant is noted once, the latest requests last") {
    Header header{};
    const uint64_t order = next_order(header);
    note_granted(header, order);
    CHECK(header.granted[kLatest - 1] == order);
    const uint64_t later = next_order(header);
    note_granted(header, later);
    CHECK(header.granted[kLatest - 1] == later);
    CHECK(header.granted[kLatest - 2] == order);
}

TEST_CASE("a ticket is the first that is free, says who waits for how much, and goes when it is dropped") {
    Waits waits;
    waits.file->tickets[0].state.store(TicketState::waiting);
    CHECK(waits.ticket.waits());
    CHECK_FALSE(waits.ticket.placed());
    CHECK(waits.ticket.order() == ~0ull);
    waits.take();
    REQUIRE(waits.ticket.is_at(1));
    const Ticket& ticket = waits.file->tickets[1];
    CHECK(ticket.state.load() == TicketState::waiting);
    CHECK(ticket.pid == getpid());
    CHECK(ticket.bytes == 5 * kGiB);
    CHECK(ticket.order == waits.ticket.order());
    CHECK(ticket.presence.load() == waits.self.presence.id());
    CHECK(strcmp(ticket.command, "train") == 0);
    waits.ticket.drop(*waits.file);
    CHECK(ticket.state.load() == TicketState::free);
    CHECK_FALSE(waits.ticket.placed());
    CHECK_FALSE(waits.ticket.is_at(1));
}

TEST_CASE("a waiter that finds no ticket gets one when it next looks") {
    Waits waits;
    for (Ticket& ticket : waits.file->tickets)
        ticket.state.store(TicketState::waiting);
    waits.take();
    CHECK_FALSE(waits.ticket.placed());
    waits.file->tickets[7].state.store(TicketState::free);
    waits.take();
    CHECK(waits.ticket.is_at(7));
}

TEST_CASE("a waiter keeps its number in the file that takes a lost one's place") {
    Waits waits;
    waits.take();
    const uint64_t order = waits.ticket.order();
    waits.ticket.lose();
    CHECK_FALSE(waits.ticket.placed());
    waits.file = std::make_unique<File>();
    waits.take();
    CHECK(waits.ticket.order() == order);
    CHECK(waits.file->tickets[0].order == order);
}

TEST_CASE("a ticket that was written over is whole again at the next look") {
    Waits waits;
    waits.take();
    waits.ticket.step_aside(waits.file.get(), true);
    Ticket& ticket = waits.file->tickets[0];
    CHECK(ticket.aside.load() == 1);
    ticket.bytes = 0;
    ticket.aside.store(0);
    ticket.state.store(TicketState::free);
    waits.take();
    CHECK(ticket.bytes == 5 * kGiB);
    CHECK(ticket.aside.load() == 1);
    CHECK(ticket.state.load() == TicketState::waiting);
}

TEST_CASE("a process that does not wait takes no ticket") {
    Waits waits;
    waits.ticket = {};
    waits.take();
    CHECK_FALSE(waits.ticket.placed());
    CHECK(waits.file->tickets[0].state.load() == TicketState::free);
}
