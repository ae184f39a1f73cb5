// Joining: a place for this process, and a reservation if it is an account's first.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "config/directory_entry.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/ledger.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/rule_share.h"
#include "policy/ledger/total.h"
#include "policy/ledger/unreserved.h"
#include "policy/ledger/users.h"

namespace cuslice::ledger {

namespace {

// For all of a join, in which others' claims may have to be decided first.
constexpr unsigned kPatienceToJoin = 1000;  // milliseconds

void say(LedgerError* why, const char* text) {
    if (why) snprintf(why->text, sizeof why->text, "%s", text);
}

void add_holder(Committed* committed, unsigned user, const Account& account, const Member& first) {
    const std::uint64_t used = __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED);
    committed->used += used;
    committed->promised += promised(account);
    if (committed->count == Committed::kMax) {
        committed->left_out++;
        return;
    }
    Holder& holder = committed->holders[committed->count++];
    holder.user = user;
    holder.pid = first.pid;
    memcpy(holder.command, first.command, sizeof holder.command);
    holder.command[sizeof holder.command - 1] = '\0';
    holder.since = first.since;
    holder.reserved = account.reserved.load();
    holder.used = used;
}

}  // namespace

// ---- what is committed ----------------------------------------------------------------------------------------------

namespace {

// One account, with a member that lives. `*undecided`: there is a claim whose fate is not known yet and that comes
// after ours. One that comes before ours counts as granted.
// False: it does not count.
bool add_account(const Account& account, unsigned user, const Member& first, Committed* committed, bool* undecided) {
    if (account.state.load() == AccountState::claimed) {
        if (account.ticket > committed->queue.order()) {
            *undecided = true;
            return false;
        }
        committed->queue.granted(account.ticket);
    }
    committed->queue.drop(user, account.ticket);
    add_holder(committed, user, account, first);
    return true;
}

}  // namespace

void Ledger::add_own(const Account* but, Committed* committed, bool* undecided) const {
    const File& file = *open_.file;
    const unsigned self = where_.user;
    const std::uint64_t now = now_realtime();
    committed->queue.granted_all(file.header.granted, now);
    for (std::uint32_t i = 0; i < kTickets; i++)
        if ((waiting_.placed && i == waiting_.index) || waits(file.tickets[i], where_))
            committed->queue.add(waiter_of(file.tickets[i], self, now));
    bool counted[kAccounts] = {};
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        const Account& account = file.accounts[i];
        if (account.state.load() == AccountState::free || account.inner) continue;
        const Member* first = nullptr;
        for (std::uint32_t k = 0; k < file.header.members && k < kMembers; k++) {
            const Member& member = file.members[k];
            if (member.state.load() != MemberState::live || member.account != i) continue;
            first = &member;
            break;
        }
        if (!first) continue;
        if (&account == but)
            committed->used += __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED);
        else
            counted[i] = add_account(account, self, *first, committed, undecided);
    }
    committed->left_of_rule = rule_[0] ? rule_limit_ : kNoLimitBytes;
    const Contents contents{file.accounts, file.members, members()};
    count_rules(contents, counted, rule_[0] ? rule_ : nullptr, committed);
    add_unreserved(contents, file, self, committed);
}

namespace {

// What is read of another user's file, and a folder's entries: too much for a stack.
struct Reading {
    char entries[4096];
    Account accounts[kAccounts];
    Ticket tickets[kTickets];
    Member members[kMembers];
};

bool read_at(int file, void* to, std::size_t bytes, std::size_t offset) {
    return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

void add_file(int file, const UserFolder& where, Reading& reading, Committed* committed, bool* undecided) {
    const unsigned user = where.user;
    Header header{};
    if (!read_at(file, &header, sizeof header, 0)) return;
    const std::size_t count = std::min(header.members, kMembers);
    // Tickets first: of one who gets what it waits for meanwhile the account is seen, and the ticket is dropped.
    if (!read_at(file, static_cast<void*>(reading.tickets), sizeof reading.tickets, offsetof(File, tickets)) ||
        !read_at(file, static_cast<void*>(reading.accounts), sizeof reading.accounts, offsetof(File, accounts)) ||
        !read_at(file, static_cast<void*>(reading.members), count * sizeof(Member), offsetof(File, members)))
        return;
    const std::uint64_t now = now_realtime();
    committed->queue.granted_all(header.granted, now);
    for (std::uint32_t i = 0; i < kTickets; i++)
        if (waits(reading.tickets[i], where)) committed->queue.add(waiter_of(reading.tickets[i], user, now));
    bool counted[kAccounts] = {};
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        const Account& account = reading.accounts[i];
        if (account.state.load() == AccountState::free || account.inner) continue;
        const Member* first = nullptr;
        for (std::uint32_t k = 0; k < count; k++) {
            const Member& member = reading.members[k];
            if (member.state.load() != MemberState::live || member.account != i) continue;
            if (!lives(member, where, Trusted::others)) continue;
            first = &member;
            break;
        }
        if (first) counted[i] = add_account(account, user, *first, committed, undecided);
    }
    const Contents contents{reading.accounts, reading.members, count};
    count_rules(contents, counted, nullptr, committed);
    add_unreserved(contents, file, where, committed);
}

}  // namespace

namespace {

// Who owns most of what is in the way, as far as that can be told without counting for each (Boyer and Moore).
class Majority {
  public:
    void add(unsigned user) {
        if (!count_) user_ = user;
        user == user_ ? count_++ : count_--;
    }
    unsigned user() const { return user_; }

  private:
    unsigned user_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace

// Without a lock of ours: a folder may be full of them. Of what another user put there its owner is looked at before
// anything else.
bool Ledger::add_foreign(const Deadline& deadline, Committed* committed, bool* undecided, LedgerError* why) {
    UserFolder own;
    {
        const LockGuard guard(mutex_);
        where_.descriptor = folder_handle_.descriptor();
        own = where_;
    }
    const int folder = openat(own.descriptor, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (folder < 0) return true;
    void* memory = mmap(nullptr, sizeof(Reading), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool all = memory != MAP_FAILED;
    Majority majority;
    while (all) {
        Reading& reading = *static_cast<Reading*>(memory);
        const long count = syscall(SYS_getdents64, folder, reading.entries, sizeof reading.entries);
        if (count <= 0) break;
        all = !deadline.passed();
        for (long at = 0; at < count && all;) {
            const auto* entry = reinterpret_cast<const DirectoryEntry*>(reading.entries + at);
            at += entry->length;
            unsigned user = 0, number = 0, owner = 0;
            char uuid[64], path[kPathBytes];
            note_leftover(entry->name);
            if (!parse_ledger_name(entry->name, &user, uuid, &number) || user == own.user || strcmp(uuid, uuid_) != 0 ||
                !ledger_path(folder_, user, uuid, path, number))
                continue;
            bool missing = false;
            const int file = open_foreign(path, user, &missing, nullptr, &owner);
            majority.add(owner);
            if (file < 0) continue;
            const UserFolder theirs{own.descriptor, user, owner, folder_};
            // Only the first of a user's names counts.
            if (!number || !has_name(theirs, uuid, 0, number, number))
                add_file(file, theirs, reading, committed, undecided);
            ::close(file);
            all = !deadline.passed();
        }
    }
    if (memory != MAP_FAILED) munmap(memory, sizeof(Reading));
    ::close(folder);
    if (!all && why) {
        snprintf(why->text, sizeof why->text, "%s has more files than can be read in time, most of them user %u's",
                 folder_, majority.user());
        why->stranger = true;
        why->stranger_user = majority.user();
    }
    return all;
}

// What is left for this request, and of what is left otherwise, for whom it is kept.
std::uint64_t Ledger::room(std::uint64_t in_use, Committed* committed) const {
    const std::uint64_t outside = in_use > committed->used ? in_use - committed->used : 0;
    const std::uint64_t gone = committed->promised + outside;
    const std::uint64_t left = gone < capacity_ ? capacity_ - gone : 0;
    const std::uint64_t possible = outside < capacity_ ? capacity_ - outside : 0;
    const Waiter* kept_for = nullptr;
    const std::uint64_t had = committed->queue.room(left, possible, &kept_for);
    committed->kept = left - had;
    if (kept_for) committed->kept_for = *kept_for;
    committed->keeps = waiting_.placed && waiting_.bytes <= possible && committed->queue.past() >= kMaxPast;
    return had;
}

bool Ledger::look(std::uint64_t in_use, Committed* committed, std::uint64_t* available) {
    const Deadline deadline(kPatienceToJoin);
    bool undecided = false;
    *committed = {};
    committed->queue.asks(own_order());
    if (!opened() || !add_foreign(deadline, committed, &undecided, nullptr)) return false;
    const Locked locked(*this, deadline);
    if (!locked) return false;
    take_back_dead_locked();
    take_ticket();
    if (waiting_.placed) committed->queue.asks(waiting_.order);  // a ticket that it has just got, too
    add_own(nullptr, committed, &undecided);
    *available = room(in_use, committed);
    return true;
}

// ---- places ---------------------------------------------------------------------------------------------------------

Joiner::Joiner(const char* text) : process(this_process()) {
    if (text)
        snprintf(command, sizeof command, "%s", text);
    else
        command_of_this_process(command, sizeof command);
}

Ledger::Place* Ledger::take_place(const Account* account, const Joiner& self, LedgerError* why) {
    File& file = *open_.file;
    if (mine_count_ == sizeof mine_ / sizeof mine_[0]) return say(why, "too many accounts for one process"), nullptr;
    std::uint32_t number = 0;
    while (number < kMembers && (file.members[number].state.load() != MemberState::free || is_mine(number))) number++;
    if (number == kMembers) return say(why, "there is no room for one more process"), nullptr;
    if (!make_room(open_, path_, number + 1)) return say(why, "there is no room for the ledger to grow"), nullptr;
    Place& place = mine_[mine_count_++];
    place = {};
    place.number = number;

    Member& member = file.members[number];
    member.account = index_of(account);
    member.caches.store(0);
    member.pid = self.process.pid;
    member.pid_namespace = self.process.pid_namespace;
    member.start_time = self.process.start_time;
    member.since = now_realtime();
    member.image = image_number();
    show_presence(number);
    member.role = keep_over_exec_ ? MemberRole::launcher : MemberRole::user;
    static_assert(sizeof member.command == sizeof self.command);
    memcpy(member.command, self.command, sizeof member.command);
    for (std::uint32_t stripe = 0; stripe < kStripes; stripe++)
        file.stripes[number * kStripes + stripe].last_use.store(now_monotonic_seconds());
    if (number >= file.header.members) file.header.members = number + 1;
    return &place;
}

void Ledger::reserves_under(const char* rule, std::uint64_t limit) {
    const LockGuard guard(mutex_);
    snprintf(rule_, sizeof rule_, "%s", rule ? rule : "");
    rule_limit_ = limit;
}

Ledger::Place* Ledger::empty_place(const Account* account) {
    for (unsigned i = 0; i < mine_count_; i++) {
        const Member& member = open_.file->members[mine_[i].number];
        if (!mine_[i].membership && member.account == index_of(account) && !is_launchers(member.role)) return &mine_[i];
    }
    return nullptr;
}

std::uint32_t Ledger::enter_rule(const Joiner& self) {
    if (!rule_[0]) return kMembers;
    Account* account = find(AccountKind::rule, rule_);
    for (unsigned i = 0; account && i < mine_count_; i++)
        if (open_.file->members[mine_[i].number].account == index_of(account)) return kMembers;
    const bool first = !account || !has_members(index_of(account));
    if (!account) account = new_account(*open_.file, AccountKind::rule);
    if (!account) return kMembers;
    const Place* const place = take_place(account, self, nullptr);
    if (!place) return kMembers;
    if (first) {
        Terms terms{AccountKind::rule, true, {}, rule_limit_, 0};
        static_assert(sizeof terms.name == sizeof rule_);
        memcpy(terms.name, rule_, sizeof rule_);
        set_terms(account, terms);
        account->state.store(AccountState::open);
    }
    open_.file->members[place->number].state.store(MemberState::live);
    return place->number;
}

void Ledger::leave_rule(std::uint32_t number) {
    for (unsigned i = 0; i < mine_count_; i++)
        if (mine_[i].number == number) return drop_place(&mine_[i]);
}

void Ledger::drop_claim(const Claim& claim) {
    drop_place(claim.place);
    leave_rule(claim.place_in_rule);
}

void Ledger::drop_place(Place* place) {
    open_.file->members[place->number].state.store(MemberState::free);
    *place = mine_[--mine_count_];
}

// The launcher that became this program keeps its place, and the reservation with it, for whatever the program becomes
// next. What the program holds is in a place of its own, which goes with the program. For people they are one.
void Ledger::adopt_launcher(const Account* account, Member* member) {
    File& file = *open_.file;
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++) {
        const Member& launcher = file.members[i];
        if (launcher.state.load() != MemberState::live || launcher.account != index_of(account) ||
            !is_launchers(launcher.role) || is_mine(i) || !is_this_process(launcher))
            continue;
        member->since = launcher.since;
        memcpy(member->command, launcher.command, sizeof member->command);
        if (is_carried(launcher.role)) return;  // it has no lock that an exec would keep, and needs none
        if (mine_count_ == sizeof mine_ / sizeof mine_[0]) return;
        if (!launchers_.adopt(where_, launcher.presence.load(), launcher.descriptor)) return;
        mine_[mine_count_] = {};
        mine_[mine_count_++].number = i;
        return;
    }
}

// ---- joining --------------------------------------------------------------------------------------------------------

Ledger::Step Ledger::begin(const Request& request, const Joiner& self, bool may_claim, Membership* membership,
                           Claim* claim, LedgerError* why) {
    take_back_some_dead_locked(find(request.kind, request.name));
    Account* account = find(request.kind, request.name);
    const bool known = account != nullptr, first = !account || !has_members(index_of(account));
    if (!known && request.made_in && request.made_in != open_.file->header.id) {
        say(why,
            "the ledger that this job began in was removed or damaged, and none of the job's processes has put it "
            "back, or its folder is not mounted in this container, or the launcher is another user: nothing is "
            "granted, for the limit could be exceeded; start the job again");
        return Step::lost;
    }
    if (!first && account->state.load() == AccountState::claimed) return Step::busy;
    const bool claims = first && request.reserved && !request.inner;
    if (claims && !may_claim) return Step::refused;
    const std::uint32_t place_in_rule = claims ? enter_rule(self) : kMembers;
    const auto fail = [&] {
        mutex_.is_held();
        leave_rule(place_in_rule);
        return Step::failed;
    };
    if (!account) account = new_account(*open_.file, request.kind);
    if (!account) return say(why, "there is no room for one more account"), fail();

    // First the place, then the claim: a claim without a living member is nobody's.
    Place* place = request.kind == AccountKind::rule && !keep_over_exec_ ? empty_place(account) : nullptr;
    if (!place) place = take_place(account, self, why);
    if (!place && take_back_dead_locked()) place = take_place(account, self, why);
    if (!place) return fail();
    Member& member = open_.file->members[place->number];
    membership->terms_ = {request.kind, request.inner, {}, request.limit, request.reserved};
    memcpy(membership->terms_.name, request.name, strlen(request.name));
    if (request.kind == AccountKind::group)
        membership->found_ = find_terms(*open_.file, known ? account : nullptr, request.name);
    if (first) {
        set_terms(account, membership->terms_);
        take_ticket();
        account->ticket = waiting_.placed ? waiting_.order : next_order();
    } else {
        adopt_launcher(account, &member);
        // What the system says now.
        if (request.kind == AccountKind::rule) account->limit.store(request.limit);
        if (request.kind == AccountKind::group) bring_limit(account, request.limit);
    }
    member.state.store(MemberState::live);
    if (claims) {
        *claim = {open_.file, account, place, known, place_in_rule};
        return Step::claimed;
    }
    enter(account, place, membership);
    return Step::joined;
}

void Ledger::enter(Account* account, Place* place, Membership* membership) {
    if (account->state.load() == AccountState::claimed) account->state.store(AccountState::open);
    place->membership = membership;
    membership->open_ = open_;
    membership->path_ = path_;
    membership->file_ = open_.file;
    membership->stripes_ = open_.file->stripes;
    membership->number_ = place->number;
    __atomic_store_n(&membership->account_, account, __ATOMIC_RELEASE);
    membership->remember();
}

// The place is this process's alone; whoever has the lock next does away with an account without members.
void Ledger::withdraw(const Claim& claim) {
    const LockGuard guard(mutex_);
    if (open_.file == claim.file) drop_claim(claim);
}

Joined Ledger::join(const Request& request, std::uint64_t in_use, Membership* membership, Committed* committed,
                    std::uint64_t* available, LedgerError* why) {
    if (strlen(request.name) >= sizeof Account::name) return say(why, "the name is too long"), Joined::unavailable;
    Deadline deadline(kPatienceToJoin);
    const Joiner self(request.command);
    // Who waits looks before it claims: until a claim is decided, others have to count it as granted.
    const bool may_claim =
        !queued() || !look(in_use, committed, available) || committed->fits(request.reserved, *available);
    Claim claim;
    for (Step step = Step::busy; step == Step::busy;) {
        {
            const Locked locked(*this, deadline, why);
            if (!locked) return Joined::unavailable;
            step = begin(request, self, may_claim, membership, &claim, why);
        }
        if (step == Step::joined) return Joined::yes;
        if (step == Step::refused) return Joined::refused;
        if (step == Step::lost) return Joined::lost;
        if (step == Step::failed) return Joined::unavailable;
        if (step == Step::busy && !deadline.pause())
            return say(why, "another process of the same job is being admitted"), Joined::unavailable;
    }

    const std::uint64_t ticket = claim.account->ticket;
    for (;;) {
        *committed = {};
        committed->queue.asks(ticket);
        bool undecided = false;
        if (!add_foreign(deadline, committed, &undecided, why)) {
            withdraw(claim);
            return Joined::unavailable;
        }
        {
            const Locked locked(*this, deadline, why);
            if (!locked) break;
            if (open_.file != claim.file) return say(why, "the ledger was removed"), Joined::unavailable;
            take_back_dead_locked();
            remove_leftovers();
            add_own(claim.account, committed, &undecided);
            if (!undecided || deadline.passed()) {
                *available = room(in_use, committed);
                if (committed->fits(request.reserved, *available)) {
                    note_granted(open_.file->header, ticket);
                    drop_ticket();
                    waiting_ = {};
                    return enter(claim.account, claim.place, membership), Joined::yes;
                }
                drop_claim(claim);
                claim.account->reserved.store(0);
                claim.account->state.store(claim.known ? AccountState::open : AccountState::free);
                return Joined::refused;
            }
        }
        deadline.pause();
    }
    withdraw(claim);
    return Joined::unavailable;
}

}  // namespace cuslice::ledger
