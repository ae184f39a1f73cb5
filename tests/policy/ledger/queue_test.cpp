// SPDX-License-Identifier: Apache-2.0
// Processes that wait for memory of one GPU: who is served when, and what is kept for whom.
#include "policy/ledger/queue.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/refusal.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// Steps of a process that waits for memory, beside those of steps.h.
struct QueueStep {
    static constexpr char queue_up = 'w';  // the answer is its position
    static constexpr char leave = 'q';
    static constexpr char read_kept = 'k';  // in GiB, for others
    static constexpr char read_times_passed = 'p';
};

constexpr char position(uint64_t number) { return digit(number); }
constexpr char times(uint64_t number) { return digit(number); }

// A process that wants so many GiB of the GPU, of which `outside` are in use outside cuslice. Step::join tries to have
// them.
std::function<char(char)> wants(const LedgerFolder& folder, uint64_t wanted, uint64_t outside = 0) {
    return [&folder, wanted, outside, place = std::make_shared<Place>()](char step) -> char {
        if (step == Step::become_other_user)
            return setresgid(60002, 60002, 60002) == 0 && setresuid(60002, 60002, 60002) == 0 ? Answer::done
                                                                                              : Answer::refused;
        if (!place->open(folder))
            return Answer::not_opened;
        const std::string job = "job-" + std::to_string(getpid());
        switch (step) {
            case QueueStep::queue_up:
                place->ledger.queue_up(wanted * kGiB, nullptr);
                [[fallthrough]];
            case Step::read_available:
                // Bytes in use: those outside cuslice, and those that members hold, which are none here.
                if (!place->ledger.look(outside * kGiB, &place->committed, &place->available))
                    return Answer::none;
                return step == QueueStep::queue_up ? position(place->committed.queue.position())
                                                   : gib(place->available / kGiB);
            case Step::join:
                return answer_of(
                    place->join(job.c_str(), wanted * kGiB, wanted * kGiB, AccountKind::job, outside * kGiB));
            case QueueStep::read_kept:
                return gib(place->committed.kept / kGiB);
            case QueueStep::read_times_passed:
                return times(place->committed.queue.past());
            case QueueStep::leave:
                place->ledger.leave_queue();
                return Answer::done;
            case Step::leave_child_behind:
                Child::leave_one_behind();
                return Answer::done;
            default:
                return Answer::unknown;
        }
    };
}

unsigned waiting(const File& file) {
    unsigned count = 0;
    for (const Ticket& ticket : file.tickets)
        count += ticket.state.load() == TicketState::waiting;
    return count;
}

// A large request waits for a GPU of 16 GiB, of which 6 are held, and small ones of 5 come one after another, each
// before the one before has ended: how many of them are served.
unsigned pass(const LedgerFolder& folder, unsigned most) {
    unsigned served = 0;
    std::unique_ptr<Child> before;
    for (unsigned i = 0; i < most; i++) {
        auto small = std::make_unique<Child>(wants(folder, 5));
        if (small->ask(Step::join) != Answer::joined)
            break;
        served++;
        before = std::move(small);
    }
    return served;
}

Waiter waiter(uint64_t order, uint64_t bytes) {
    Waiter made;
    made.order = order;
    made.bytes = bytes;
    return made;
}

}  // namespace

TEST_CASE("a queue: who is in front and fits is served first, and may be passed so often where it doesn't") {
    Queue queue;
    queue.asks(100);
    const Waiter* kept_for = nullptr;
    CHECK(queue.room(10, 16, &kept_for) == 10);
    CHECK(kept_for == nullptr);
    queue.add(waiter(30, 3));
    queue.add(waiter(20, 4));
    queue.add(waiter(200, 10));  // came later
    CHECK(queue.position() == 3);
    CHECK(queue.total() == 3);
    const auto kept_order = [&] { return kept_for != nullptr ? kept_for->order : 0; };
    CHECK(queue.room(10, 16, &kept_for) == 3);
    CHECK(kept_order() == 20);
    CHECK(queue.room(3, 16, &kept_for) == 0);  // the first of them doesn't fit, the second does
    CHECK(kept_order() == 30);
    CHECK(queue.room(4, 16, &kept_for) == 0);  // the first one has just enough
    CHECK(kept_order() == 20);
    CHECK(queue.room(2, 16, &kept_for) == 2);  // neither does
    for (unsigned i = 0; i < kMaxPast; i++) {
        CHECK(queue.room(2, 16, &kept_for) == 2);
        queue.granted(25 + 10 * i);  // 25, 35, 45: the first of them passed one waiter alone
    }
    CHECK(queue.past() == 0);
    CHECK(queue.room(2, 16, &kept_for) == 0);
    CHECK(kept_order() == 20);
    CHECK(queue.room(2, 3, &kept_for) == 2);  // it could not be served at all, and the other was passed twice
    queue.drop(0, 20);
    CHECK(queue.room(2, 16, &kept_for) == 2);
    CHECK(queue.position() == 2);
}

TEST_CASE("a queue of any length keeps what is left for the oldest, in whatever order they are read") {
    for (const bool backwards : {false, true}) {
        Queue queue;
        const unsigned count = 3 * Queue::kMax;
        for (unsigned i = 0; i < count; i++)
            queue.add(waiter(10 + (backwards ? count - 1 - i : i), 8));
        CHECK(queue.position() == count + 1);
        const Waiter* kept_for = nullptr;
        CHECK(queue.room(9, 16, &kept_for) == 1);
        REQUIRE(kept_for != nullptr);
        CHECK(kept_for->order == 10);
        CHECK(queue.room(7, 16, &kept_for) == 7);
        for (unsigned i = 0; i < kMaxPast; i++)
            queue.granted(1000 + i);
        CHECK(queue.room(7, 16, &kept_for) == 0);
        REQUIRE(kept_for != nullptr);
        CHECK(kept_for->order == 10);
    }
}

TEST_CASE("numbers of requests that nobody can have been given yet are not believed") {
    constexpr uint64_t kNow = 1'000'000'000'000;
    Granted granted;
    const uint64_t orders[kLatest] = {~0ull, kNow + kMaxAhead, kNow - 5, kNow + 5, 0, 0, 0, 7};
    granted.note_all(orders, kNow);
    CHECK(granted.past(kNow - 6) == 2);
    CHECK(granted.past(1) == 3);
    for (uint64_t i = 0; i < 2 * kLatest; i++)
        granted.note(kNow + i);
    CHECK(granted.past(1) == kLatest);  // so many are known
    CHECK(granted.past(kNow + 2 * kLatest - 3) == 2);
}

TEST_CASE("who waits is served in the order in which they came") {
    const LedgerFolder folder;
    Child holder(wants(folder, 10)), first(wants(folder, 12)), second(wants(folder, 11)), third(wants(folder, 4));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    CHECK(first.ask(QueueStep::queue_up) == position(1));
    CHECK(second.ask(QueueStep::queue_up) == position(2));
    holder.kill();
    CHECK(second.ask(Step::read_available) == gib(4));
    CHECK(second.ask(QueueStep::read_kept) == gib(12));
    CHECK(second.ask(Step::join) == Answer::refused);
    CHECK(third.ask(Step::join) == Answer::joined);  // beside what is kept
    CHECK(first.ask(Step::join) == Answer::joined);
    CHECK(second.ask(QueueStep::queue_up) == position(1));
    third.kill();
    CHECK(second.ask(Step::join) == Answer::refused);
    first.kill();
    CHECK(second.ask(Step::join) == Answer::joined);
    CHECK(waiting(*Mapped(folder).file) == 0);
}

TEST_CASE("a request that waits is passed a bounded number of times, and then what is left is kept for it") {
    const LedgerFolder folder;
    Child holder(wants(folder, 6)), large(wants(folder, 14));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    CHECK(large.ask(Step::join) == Answer::refused);
    CHECK(large.ask(QueueStep::queue_up) == position(1));
    CHECK(pass(folder, 10) == kMaxPast);
    CHECK(large.ask(Step::read_available) == gib(10));
    CHECK(large.ask(QueueStep::read_times_passed) == times(kMaxPast));

    const bool waits = GENERATE(false, true);  // those that come later, too
    Child later(wants(folder, 1));
    if (waits)
        CHECK(later.ask(QueueStep::queue_up) == position(2));
    CHECK(later.ask(Step::join) == Answer::refused);
    CHECK(later.ask(QueueStep::read_kept) == gib(10));
    SECTION("it is served as soon as it fits") {
        holder.kill();
        CHECK(later.ask(Step::join) == Answer::joined);  // beside it
        CHECK(large.ask(Step::join) == Answer::joined);
        CHECK(waiting(*Mapped(folder).file) == 0);
        CHECK(pass(folder, 10) == 0);  // nobody waits: it is full
    }
    SECTION("nothing is kept for one that gives up") {
        CHECK(large.ask(QueueStep::leave) == Answer::done);
        CHECK(later.ask(Step::join) == Answer::joined);
    }
    SECTION("nothing is kept for one that was killed") {
        large.kill();
        CHECK(later.ask(Step::join) == Answer::joined);
    }
    SECTION("nothing is kept for one that was killed, whose child lives on") {
        CHECK(large.ask(Step::leave_child_behind) == Answer::done);
        large.kill();
        CHECK(later.ask(Step::join) == Answer::joined);
    }
    SECTION("nothing is kept for one that has not looked for long, until it looks again") {
        REQUIRE(kill(large.pid(), SIGSTOP) == 0);
        {
            const Mapped mapped(folder);
            for (Ticket& ticket : mapped.file->tickets)
                ticket.looked.store(ticket.looked.load() - kLooksWithin);
        }
        CHECK(later.ask(Step::join) == Answer::joined);
        REQUIRE(kill(large.pid(), SIGCONT) == 0);
        CHECK(large.ask(Step::read_available) == gib(9));
        Child latest(wants(folder, 1));
        CHECK(latest.ask(Step::join) == Answer::refused);
        CHECK(latest.ask(QueueStep::read_kept) == gib(9));
    }
    SECTION("nothing is kept for one that what is in use outside cuslice keeps out") {
        Child beside(wants(folder, 1, 3));
        CHECK(beside.ask(Step::join) == Answer::joined);
    }
}

TEST_CASE("where the clock was set back, who comes later still comes after those who wait, and passes them as often") {
    const LedgerFolder folder;
    Child holder(wants(folder, 6)), large(wants(folder, 14)), another(wants(folder, 13));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    const Mapped mapped(folder);
    const uint64_t before = mapped.file->header.last_order + 3'600'000'000'000;  // an hour
    mapped.file->header.last_order = before;
    CHECK(large.ask(QueueStep::queue_up) == position(1));
    CHECK(mapped.file->tickets[0].order == before + 1);
    CHECK(another.ask(QueueStep::queue_up) == position(2));
    CHECK(pass(folder, 10) == kMaxPast);
    holder.kill();
    CHECK(another.ask(Step::join) == Answer::refused);
    CHECK(large.ask(Step::join) == Answer::joined);
}

TEST_CASE("a refusal says for whom what is left is kept") {
    const LedgerFolder folder;
    Child holder(wants(folder, 10)), first(wants(folder, 12));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    CHECK(first.ask(QueueStep::queue_up) == position(1));
    holder.kill();
    static Refusal refusal;  // too large for a stack
    Place place;
    REQUIRE(place.open(folder));
    for (const uint64_t asked : {6, 3}) {
        Request request;
        request.name = "job";
        request.limit = request.reserved = refusal.asked = asked * kGiB;
        const Joined joined =
            place.ledger.join(request, 0, &place.membership, &refusal.committed, &refusal.available, &refusal.failure);
        CHECK(joined == (asked == 6 ? Joined::refused : Joined::yes));
        if (asked != 6)
            continue;
        const std::string text(describe_refusal(refusal).view());
        CAPTURE(text);
        CHECK(text.starts_with("6144.0 MiB requested, 16.0 GiB left, 12.0 GiB of it reserved for pid " +
                               std::to_string(first.pid()) + " (test_policy_que, user " + std::to_string(geteuid()) +
                               "), which has waited for 12.0 GiB for "));
        CHECK(text.ends_with(" s. Try --wait or --limit 4096MiB"));
    }
}

TEST_CASE("a request that waits on several GPUs, and has what is left of one kept, steps aside on the others") {
    const LedgerFolder folder;
    Child holder(wants(folder, 6));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    Place large;
    REQUIRE(large.open(folder));
    large.ledger.queue_up(14 * kGiB, "large");
    REQUIRE(large.ledger.look(0, &large.committed, &large.available));
    CHECK_FALSE(large.committed.keeps);
    CHECK(pass(folder, 10) == kMaxPast);
    REQUIRE(large.ledger.look(0, &large.committed, &large.available));
    CHECK(large.committed.keeps);
    large.ledger.step_aside(true);
    CHECK(pass(folder, 4) == 4);
    large.ledger.step_aside(false);
    CHECK(pass(folder, 4) == 0);
    large.ledger.close();
    CHECK(pass(folder, 4) == 4);
}

TEST_CASE("a ledger that is lost is put back with the places in its queue, and how often they were passed") {
    const LedgerFolder folder;
    const std::string how = GENERATE("removed", "written over");
    CAPTURE(how);
    Place holder;
    REQUIRE(holder.open(folder));
    REQUIRE(holder.join("job", 6 * kGiB, 6 * kGiB, AccountKind::job) == Joined::yes);
    Child first(wants(folder, 14)), second(wants(folder, 13));
    CHECK(first.ask(QueueStep::queue_up) == position(1));
    CHECK(second.ask(QueueStep::queue_up) == position(2));
    CHECK(pass(folder, 10) == kMaxPast);
    holder.ledger.take_back_dead();
    if (how == "removed")
        std::filesystem::remove(folder.file());
    else
        std::fstream(folder.file(), std::ios::in | std::ios::out | std::ios::binary)
            << std::string(offsetof(File, members), 'e');
    second.ask(Step::read_available);
    holder.ledger.take_back_dead();
    first.ask(Step::read_available);
    CHECK(first.ask(QueueStep::queue_up) == position(1));
    CHECK(second.ask(QueueStep::queue_up) == position(2));
    CHECK(waiting(*Mapped(folder).file) == 2);
    if (how == "removed")
        CHECK(pass(folder, 10) == 0);
    else
        CHECK(pass(folder, 10) == kMaxPast);  // counted from the beginning
    CHECK(second.ask(Step::read_available) == gib(0));
    holder.ledger.close();
    CHECK(second.ask(Step::join) == Answer::refused);
    CHECK(first.ask(Step::join) == Answer::joined);
}

TEST_CASE("who waits claims nothing that it can't have: others would have to count it as granted for that moment") {
    const LedgerFolder folder;
    Child holder(wants(folder, 6)), large(wants(folder, 14));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    CHECK(large.ask(QueueStep::queue_up) == position(1));
    CHECK(large.ask(Step::join) == Answer::refused);
    const Mapped mapped(folder);
    for (const Account& account : mapped.file->accounts)
        CHECK(account.ticket != mapped.file->tickets[0].order);
    holder.kill();
    CHECK(large.ask(Step::join) == Answer::joined);
    CHECK(std::any_of(std::begin(mapped.file->accounts), std::end(mapped.file->accounts),
                      [&](const Account& account) { return account.ticket == mapped.file->tickets[0].order; }));
}

TEST_CASE("a request that is being granted counts once: by its account, and not by its ticket as well") {
    const LedgerFolder folder;
    Place granted, another;
    REQUIRE(granted.open(folder));
    granted.ledger.queue_up(6 * kGiB, "granted");
    REQUIRE(granted.join("job", 6 * kGiB, 6 * kGiB, AccountKind::job) == Joined::yes);
    REQUIRE(another.open(folder));
    another.ledger.queue_up(6 * kGiB, "another");
    const Mapped mapped(folder);
    CHECK(Child(wants(folder, 5)).ask(Step::join) == Answer::refused);  // six of the ten that are left are kept
    // As it is between the grant and the end of the ticket.
    mapped.file->tickets[0].order = granted.membership.account().ticket;
    CHECK(Child(wants(folder, 5)).ask(Step::join) == Answer::joined);
    another.ledger.close();
}

TEST_CASE("tickets that nobody has are no waiters, and what a queue's numbers are written over with bounds nothing") {
    const LedgerFolder folder;
    Child holder(wants(folder, 6)), large(wants(folder, 14)), small(wants(folder, 5));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    const Mapped mapped(folder);
    const auto invent = [](Ticket& ticket, uint64_t order) {
        ticket.state.store(TicketState::waiting);
        ticket.order = order;
        ticket.bytes = kCapacity;
        ticket.looked.store(cuslice::now_realtime());
        ticket.pid = 1;
        ticket.lock = LockKind::open_file;
    };
    for (Ticket& ticket : mapped.file->tickets)
        invent(ticket, 1);
    CHECK(large.ask(QueueStep::queue_up) == position(1));
    CHECK(waiting(*mapped.file) == 1);
    for (uint32_t i = 1; i < kTickets; i++)
        memset(static_cast<void*>(&mapped.file->tickets[i]), 0xff, 128);
    for (uint64_t& order : mapped.file->header.granted)
        order = ~0ull;
    mapped.file->header.last_order = ~0ull;
    CHECK(small.ask(Step::join) == Answer::joined);
    CHECK(large.ask(Step::read_available) == gib(5));
    CHECK(large.ask(QueueStep::read_times_passed) == times(1));
    // Its own is as it was again at its next look, whatever somebody wrote.
    memset(static_cast<void*>(&mapped.file->tickets[0]), 0xff, 128);
    CHECK(large.ask(Step::read_available) == gib(5));
    CHECK(waiting(*mapped.file) == 1);
    small.kill();
    CHECK(pass(folder, 10) == kMaxPast - 1);
    CHECK(large.ask(QueueStep::queue_up) == position(1));
}

TEST_CASE("more may wait than there are tickets: the others get one as soon as there is one") {
    const LedgerFolder folder;
    Child holder(wants(folder, 6));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    std::vector<std::unique_ptr<Place>> places;
    for (uint32_t i = 0; i < kTickets + 1; i++) {
        places.push_back(std::make_unique<Place>());
        REQUIRE(places.back()->open(folder));
        places.back()->ledger.queue_up(14 * kGiB, "large");
        CHECK(places.back()->ledger.queued() == (i < kTickets));
    }
    Place& last = *places.back();
    REQUIRE(last.ledger.look(0, &last.committed, &last.available));
    CHECK_FALSE(last.ledger.queued());
    places.front()->ledger.close();
    REQUIRE(last.ledger.look(0, &last.committed, &last.available));
    CHECK(last.ledger.queued());
    CHECK(last.committed.queue.position() == kTickets);
    CHECK(last.committed.queue.total() == kTickets);
    for (const auto& place : places)
        place->ledger.close();
    CHECK(waiting(*Mapped(folder).file) == 0);
}

TEST_CASE("users wait in one queue, and pass each other no more often than their own") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
    Child holder(wants(folder, 6)), large(wants(folder, 14)), another(wants(folder, 15));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    REQUIRE(large.ask(Step::become_other_user) == Answer::done);
    CHECK(large.ask(QueueStep::queue_up) == position(1));
    CHECK(another.ask(QueueStep::queue_up) == position(2));
    CHECK(pass(folder, 1) == 1);
    {
        Child small(wants(folder, 5));
        REQUIRE(small.ask(Step::become_other_user) == Answer::done);
        CHECK(small.ask(Step::join) == Answer::joined);
    }
    CHECK(pass(folder, 10) == kMaxPast - 2);
    CHECK(large.ask(Step::read_available) == gib(10));
    CHECK(large.ask(QueueStep::read_times_passed) == times(kMaxPast));
    holder.kill();
    CHECK(another.ask(Step::join) == Answer::refused);
    CHECK(another.ask(QueueStep::read_kept) == gib(16 - 2));
    CHECK(large.ask(Step::join) == Answer::joined);
    large.kill();
    CHECK(another.ask(Step::join) == Answer::joined);
}
