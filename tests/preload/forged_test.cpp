// SPDX-License-Identifier: Apache-2.0
// A user's own ledger may say anything, and be of any length: other users get what is theirs all the same.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/layout.h"
#include "tests/allowed.h"
#include "tests/preload/count_calls.h"
#include "tests/preload/town.h"

namespace cuslice::tests {
namespace {

using ledger::Account;
using ledger::AccountState;
using ledger::File;
using ledger::Member;
using ledger::MemberState;
using ledger::Ticket;
using ledger::TicketState;

constexpr uint64_t kAll = ~uint64_t{0}, kHalf = uint64_t{1} << 63, kCapacity = 2002 * kMiB;
// The reservation of Bob's real job.
constexpr uint64_t kReal = 128 * kMiB;

template <typename T>
void copy(T& to, const T& from) {
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
}

Account& real_account(File& file) {
    for (Account& account : file.accounts)
        if (account.state.load() == AccountState::open && account.reserved.load() == kReal)
            return account;
    _exit(1);
}

Member& real_member(File& file) {
    const auto index = static_cast<uint32_t>(&real_account(file) - file.accounts);
    for (Member& member : file.members)
        if (member.state.load() == MemberState::live && member.account == index)
            return member;
    _exit(1);
}

void copy_member(File& file, uint32_t to, uint32_t account) {
    copy(file.members[to], real_member(file));
    file.members[to].account = account;
    file.header.members = std::max(file.header.members, to + 1);
}

// More jobs of his, as large as a number can be, all of the process that lives.
void forge_jobs(File& file, unsigned count, uint64_t reserved, uint64_t used) {
    const Account& real = real_account(file);
    unsigned made = 0;
    for (uint32_t i = 0; i < ledger::kAccounts && made < count; i++) {
        Account& account = file.accounts[i];
        if (&account == &real)
            continue;
        copy(account, real);
        account.reserved.store(reserved);
        account.total.bytes = used;
        copy_member(file, 64 + made++, i);
    }
}

void forge_tickets(File& file, const std::vector<uint64_t>& orders, const std::vector<uint64_t>& sizes,
                   const std::vector<uint64_t>& looks) {
    const Member& member = real_member(file);
    for (uint32_t i = 0; i < ledger::kTickets; i++) {
        Ticket& ticket = file.tickets[i];
        ticket.pid = member.pid;
        ticket.pid_namespace = member.pid_namespace;
        ticket.start_time = member.start_time;
        ticket.since = orders[i % orders.size()];
        ticket.order = orders[i % orders.size()];
        ticket.bytes = sizes[i / orders.size() % sizes.size()];
        ticket.looked.store(looks[i % looks.size()]);
        ticket.aside.store(0);
        ticket.lock = member.lock;
        ticket.presence.store(member.presence.load());
        ticket.state.store(TicketState::waiting);
    }
}

// That others were granted since, time and again: who waits was passed by as often as he may be.
void forge_passed(File& file) {
    for (uint64_t& order : file.header.granted)
        order = now_realtime();
}

// All places, in all accounts, of processes of which there are none: or of those of others.
void forge_crowd(File& file, const std::function<void(Member&, uint32_t)>& who) {
    Account real{};
    Member living{};
    copy(real, real_account(file));
    copy(living, real_member(file));
    for (Account& account : file.accounts) {
        copy(account, real);
        account.reserved.store(kCapacity);
    }
    for (uint32_t i = 0; i < ledger::kMembers; i++) {
        copy(file.members[i], living);
        file.members[i].account = i % ledger::kAccounts;
        who(file.members[i], i);
    }
    file.header.members = ledger::kMembers;
    file.header.room = ledger::kMembers;
}

// As their owner, who has written them over.
void change(const Town& town, const std::function<void(File&)>& forge) {
    const std::string path = town.stem_of(kBob) + ".ledger";
    const Neighbour bob(kBob, [&] {
        const int file = ::open(path.c_str(), O_RDWR);
        void* const memory = ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED)
            return 0;
        forge(*static_cast<File*>(memory));
        return 1;
    });
    REQUIRE(bob.done() == 1);
}

// Bob's job, with the accounts that the launcher made, and one that holds some memory.
std::unique_ptr<Guest> real_job(const Town& town) {
    auto bob = town.guest(kBob, {"--limit", "128MiB"});
    REQUIRE(bob->pid() > 0);
    return bob;
}

// An /etc in which the system sets a ceiling.
struct Etc {
    explicit Etc(const std::string& ceiling) {
        for (const char* file : {"passwd", "group", "ld.so.cache", "nsswitch.conf"}) {
            std::error_code none;
            std::filesystem::create_directories(folder.path() + "/etc");
            std::filesystem::copy(std::string("/etc/") + file, folder.path() + "/etc/" + file, none);
        }
        folder.write("etc/cuslice/cuslice.toml", "[ceiling]\n" + ceiling + "\n");
        for (const char* part : {"", "/etc", "/etc/cuslice"})
            std::filesystem::permissions(folder.path() + part, std::filesystem::perms(0755));
    }
    Words before() const {
        return {"/usr/bin/unshare",    "--mount", "sh", "-c", "mount --bind \"$0\" /etc && exec \"$@\"",
                folder.path() + "/etc"};
    }
    static bool possible() { return can_unshare(CLONE_NEWNS); }
    Folder folder;
};

struct Forgery {
    const char* name;
    std::function<void(File&)> forge;
};

}  // namespace

TEST_CASE("a user's ledger that promises more than there is gets no more than the system lets anybody have") {
    if (!has_users())
        return;
    const Etc etc("fraction = 0.25");
    if (!etc.possible())
        return;
    const Forgery forgery =
        GENERATE(Forgery{"nothing", [](File&) {}},
                 Forgery{"more than the GPU", [](File& file) { real_account(file).reserved.store(64 * kGiB); }},
                 Forgery{"more than the ceiling", [](File& file) { real_account(file).reserved.store(1900 * kMiB); }},
                 Forgery{"all that a number can be", [](File& file) { real_account(file).reserved.store(kAll); }},
                 Forgery{"that it uses more than the GPU", [](File& file) { real_account(file).total.bytes = kAll; }},
                 Forgery{"two jobs whose sum is nothing", [](File& file) { forge_jobs(file, 2, kHalf, 0); }},
                 Forgery{"a waiter of the whole GPU who was passed", [](File& file) {
                             forge_tickets(file, {1}, {0}, {now_realtime()});
                             file.tickets[0].bytes = kCapacity;
                             forge_passed(file);
                         }});
    CAPTURE(forgery.name);
    const Town town;
    const auto bob = real_job(town);
    change(town, forgery.forge);
    const Ended alice = run_counted(
        joined(etc.before(), town.launch(kAlice, {"--fraction", "0.2"}, {"/bin/echo", "started"})), town.outside());
    CHECK(alice.err == "");
    CHECK(alice.out == "started\n");
}

TEST_CASE("promises of a user whose sum is more than a number holds are no room for others") {
    if (!has_users())
        return;
    const Forgery forgery = GENERATE(Forgery{"two halves", [](File& file) { forge_jobs(file, 2, kHalf, 0); }},
                                     Forgery{"two that are used", [](File& file) { forge_jobs(file, 2, 0, kHalf); }},
                                     Forgery{"127 of the most", [](File& file) { forge_jobs(file, 127, kAll, kAll); }},
                                     Forgery{"one of the most and one", [](File& file) {
                                                 forge_jobs(file, 1, kAll, 0);
                                                 real_account(file).reserved.store(kReal);
                                             }});
    CAPTURE(forgery.name);
    const Town town;
    const auto bob = real_job(town);
    REQUIRE(town.start(kAlice, {"--limit", "1500MiB"}).out == "started\n");
    change(town, forgery.forge);
    for (const char* limit : {"1900MiB", "1GiB", "400MiB"}) {
        const Ended refused = town.start(kAlice, {"--limit", limit});
        CHECK(refused.exit_code == 75);
        CHECK(refused.err.find("user 60002") != std::string::npos);
    }
    // By nobody once he has ended.
    bob->kill(SIGKILL);
    bob->finish();
    CHECK(town.start(kAlice, {"--limit", "1900MiB"}).out == "started\n");
}

TEST_CASE("a claim of another user that is never decided holds nobody up") {
    if (!has_users())
        return;
    const uint64_t ticket = GENERATE(0ull, 1ull, kAll, kAll - 1);
    CAPTURE(ticket);
    const Town town;
    const auto bob = real_job(town);
    const Ended before = town.start(kAlice, {"--limit", "1500MiB"});
    REQUIRE(before.out == "started\n");
    change(town, [&](File& file) {
        Account& account = real_account(file);
        account.ticket = ticket;
        account.state.store(AccountState::claimed);
    });
    const Ended after = town.start(kAlice, {"--limit", "1500MiB"});
    CHECK(after.out == "started\n");
    CHECK(after.err == "");
    // It counts as granted after at most 100 ms, in pauses of 50 us.
    CHECK(after.naps <= 10 * before.naps + 2500);
    CHECK(town.start(kAlice, {"--limit", "1900MiB"}).exit_code == 75);
}

TEST_CASE("tickets with numbers that can't be keep nothing from others") {
    if (!has_users())
        return;
    const uint64_t now = now_realtime(), hour = 3600ull * 1'000'000'000;
    const Forgery forgery = GENERATE_COPY(Forgery{"more than there is",
                                                  [&](File& f) {
                                                      forge_tickets(f, {0, 1, now}, {kAll, kHalf, 64 * kGiB}, {now});
                                                  }},
                                          Forgery{"nothing",
                                                  [&](File& f) {
                                                      forge_tickets(f, {0, 1, now}, {0}, {now});
                                                  }},
                                          Forgery{"in the time to come",
                                                  [&](File& f) {
                                                      forge_tickets(f, {kAll, now + hour}, {kCapacity}, {now});
                                                  }},
                                          Forgery{"long not looked",
                                                  [&](File& f) {
                                                      forge_tickets(f, {0, 1}, {kCapacity}, {0, 1, now - hour});
                                                  }},
                                          Forgery{"looked in the time to come", [&](File& f) {
                                                      forge_tickets(f, {0, 1}, {kCapacity}, {kAll, now + hour});
                                                  }});
    const bool passed = GENERATE(false, true);
    CAPTURE(forgery.name, passed);
    const Town town;
    const auto bob = real_job(town);
    change(town, [&](File& file) {
        forgery.forge(file);
        if (passed)
            forge_passed(file);
        file.header.last_order = kAll;
    });
    const Ended alice = town.start(kAlice, {"--limit", "1500MiB"});
    CHECK(alice.err == "");
    CHECK(alice.out == "started\n");
    CHECK(town.ps(kAlice).exit_code == 0);
}

TEST_CASE("a ledger full of processes that don't live promises nothing, and is looked at in bounded steps") {
    if (!has_users())
        return;
    const Forgery forgery = GENERATE(Forgery{"no such process",
                                             [](File& file) {
                                                 forge_crowd(file, [](Member& member, uint32_t i) {
                                                     member.pid = static_cast<int32_t>(0x7ff00000 + i);
                                                     member.presence.store(0x1234'5678'0000ull + i);
                                                 });
                                             }},
                                     Forgery{"no process at all",
                                             [](File& file) {
                                                 forge_crowd(file, [](Member& member, uint32_t i) {
                                                     member.pid = i % 2 ? -1 : 0;
                                                     member.presence.store(0);
                                                 });
                                             }},
                                     Forgery{"in another pid namespace",
                                             [](File& file) {
                                                 forge_crowd(file, [](Member& member, uint32_t i) {
                                                     member.pid_namespace++;
                                                     member.presence.store(kAll - i);
                                                 });
                                             }},
                                     Forgery{"without a namespace",
                                             [](File& file) {
                                                 forge_crowd(file, [](Member& member, uint32_t) {
                                                     member.pid_namespace = 0;
                                                     member.start_time = 0;
                                                     member.presence.store(1);
                                                 });
                                             }},
                                     Forgery{"that began at another time",
                                             [](File& file) {
                                                 forge_crowd(file, [](Member& member, uint32_t) {
                                                     member.start_time += 1'000'000;
                                                     member.presence.store(1);
                                                 });
                                             }},
                                     Forgery{"in accounts that there aren't", [](File& file) {
                                                 forge_crowd(file, [](Member& member, uint32_t i) {
                                                     member.account = ledger::kAccounts + i * 0x10001;
                                                     member.lock = static_cast<ledger::LockKind>(77);
                                                     member.role = static_cast<ledger::MemberRole>(77);
                                                 });
                                             }});
    CAPTURE(forgery.name);
    const Town town;
    const auto bob = real_job(town);
    change(town, forgery.forge);
    const Ended alice = town.start(kAlice, {"--limit", "1900MiB"});
    CHECK(alice.err == "");
    CHECK(alice.out == "started\n");
    const Ended listed = town.ps(kAlice);
    CHECK(listed.exit_code == 0);
    CHECK(Json::parse(listed.out)["processes"].size() == 0);
    if (!can_trace())
        return;
    const Traced traced = count_calls(town.launch(kAlice, {"--limit", "1900MiB"}, {"/bin/true"}), town.outside());
    CHECK(traced.exit_code == 0);
    CHECK(traced.calls <= 40l * ledger::kMembers);
}

TEST_CASE("a ledger that its own user shortens ends no program of another user's") {
    if (!has_users())
        return;
    const long length = GENERATE(0l, 1l, 255l, 4096l, static_cast<long>(offsetof(File, members)),
                                 static_cast<long>(sizeof(File)) - 1, -1l);
    CAPTURE(length);
    const Town town;
    auto bob = real_job(town);
    TwoProcesses job(town, kAlice);
    const std::string path = town.stem_of(kBob) + ".ledger";
    // -1: all the time, and back again.
    const Neighbour shortener(
        kBob, [&] { return ::truncate(path.c_str(), length < 0 ? 0 : length) == 0; },
        [&] {
            for (long i = 0; length < 0; i++)
                if (::truncate(path.c_str(), i % 2 ? static_cast<long>(sizeof(File)) : i % 5 * 100'000) != 0)
                    break;
        });
    REQUIRE(shortener.done() == 1);
    for (int i = 0; i < 10; i++) {
        const Ended started = town.start(kAlice, {"--limit", "400MiB"});
        CHECK(started.exit_code == 0);
        CHECK(started.out == "started\n");
        const Ended listed = town.ps(kCarol);
        CHECK(listed.exit_code == 0);
        CHECK(Json::parse(listed.out)["processes"].size() == 2);
    }
    job.check();
}

}  // namespace cuslice::tests
