// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/forge.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::tests::model {
namespace {

using namespace ledger;

class Forger {
  public:
    Forger(File& file, const Known& known, std::mt19937_64& random) : file_(file), known_(known), random_(random) {}

    std::string any() {
        switch (below(8)) {
            case 0:
            case 1:
            case 2:
                return claim();
            case 3:
                return ticket();
            case 4:
                return header();
            case 5:
                return held();
            case 6:
                return member(static_cast<uint32_t>(below(kAccounts + 2)));
            default:
                return bytes();
        }
    }

  private:
    uint64_t below(uint64_t end) { return random_() % end; }
    bool chance(unsigned in) { return below(in) == 0; }

    // Figures of memory that somebody could believe, or stumble over.
    uint64_t figure() {
        const uint64_t kFigures[] = {0,          1,          4096,       uint64_t{64} << 20, 1ull << 30, 3ull << 30,
                                     1ull << 40, 1ull << 48, 1ull << 62, ~0ull >> 1,         1ull << 63, ~0ull};
        return chance(8) ? random_() : kFigures[below(std::size(kFigures))];
    }

    uint64_t moment() {
        const uint64_t now = now_realtime();
        const uint64_t kMoments[] = {0, 1, now, now - 1'000'000'000, now + 3'600'000'000'000, ~0ull};
        return kMoments[below(std::size(kMoments))];
    }

    void text(char* to, size_t size) {
        for (size_t i = 0; i < size; i++)
            to[i] = static_cast<char>(random_());
        if (chance(2))
            to[below(size)] = '\0';
    }

    // As often as not one that lives, of whomever.
    template <typename Owner>
    void identity(Owner& owner) {
        const int pid =
            known_.pids.empty() || chance(4) ? static_cast<int>(random_()) : known_.pids[below(known_.pids.size())];
        owner.pid = pid;
        owner.pid_namespace = chance(4) ? random_() : own_pid_namespace();
        owner.start_time = chance(4) ? random_() : start_time_of(pid);
        owner.since = moment();
        owner.presence.store(known_.presences.empty() || chance(4) ? random_()
                                                                   : known_.presences[below(known_.presences.size())]);
        owner.lock = static_cast<LockKind>(chance(8) ? random_() : below(3));
        text(owner.command, sizeof owner.command);
    }

    std::string member(uint32_t account) {
        const auto number = static_cast<uint32_t>(below(kRoom));
        Member& member = file_.members[number];
        identity(member);
        member.account = account;
        member.caches.store(static_cast<uint32_t>(random_()));
        member.image = random_();
        member.role = static_cast<MemberRole>(chance(8) ? random_() : below(4));
        member.descriptor = static_cast<int32_t>(random_());
        member.state.store(chance(8) ? static_cast<MemberState>(random_()) : MemberState::live);
        file_.header.members = std::max(file_.header.members, number + 1);
        return "member " + std::to_string(number);
    }

    std::string claim() {
        const auto number = static_cast<uint32_t>(below(kAccounts));
        Account& account = file_.accounts[number];
        account.total.bytes = figure();
        account.limit.store(figure());
        account.reserved.store(figure());
        account.kind = static_cast<AccountKind>(chance(8) ? random_() : below(3));
        account.inner = static_cast<uint32_t>(below(3));
        account.wanted.store(static_cast<uint32_t>(random_()));
        account.peak.store(figure());
        account.ticket = moment();
        account.left = moment();
        text(account.name, sizeof account.name);
        account.state.store(static_cast<AccountState>(chance(8) ? random_() : 1 + below(2)));
        std::string said = "account " + std::to_string(number);
        for (uint64_t i = 1 + below(3); i > 0; --i)
            said += ", " + member(number);
        return said;
    }

    std::string ticket() {
        const uint64_t count = chance(4) ? kTickets : 1 + below(4);
        for (uint64_t i = 0; i < count; i++) {
            Ticket& ticket = file_.tickets[below(kTickets)];
            identity(ticket);
            ticket.order = moment();
            ticket.bytes = figure();
            ticket.looked.store(moment());
            ticket.aside.store(static_cast<uint32_t>(below(3)));
            ticket.state.store(TicketState::waiting);
        }
        return std::to_string(count) + " tickets";
    }

    std::string header() {
        Header& header = file_.header;
        switch (below(9)) {
            case 0:
                header.members = static_cast<uint32_t>(chance(2) ? random_() : below(kMembers + 2));
                return "the number of members";
            case 1:
                header.room = static_cast<uint32_t>(chance(2) ? random_() : below(kMembers + 2));
                return "the room";
            case 2:
                header.capacity = figure();
                return "the capacity";
            case 3:
                for (uint64_t& granted : header.granted)
                    granted = moment();
                return "what was granted";
            case 4:
                header.last_order = moment();
                return "the last number";
            case 5:
                header.holder = random_();
                header.locker = static_cast<int32_t>(random_());
                return "who has the lock";
            case 6:
                header.magic ^= 1u << below(8);
                return "the magic number";
            case 7:
                text(header.uuid, sizeof header.uuid);
                return "the GPU";
            default:
                header.version += static_cast<uint32_t>(below(3));
                header.unfinished = 1;
                header.id = random_();
                return "the version";
        }
    }

    std::string held() {
        const uint64_t number = below(kRoom * kStripes);
        Stripe& stripe = file_.stripes[number];
        stripe.held.store(static_cast<int64_t>(figure()));
        stripe.before.store(static_cast<int64_t>(figure()));
        stripe.delta.store(static_cast<int64_t>(figure()));
        stripe.begun.store(random_());
        stripe.completed.store(random_());
        stripe.replaced.store(random_());
        stripe.last_use.store(moment());
        return "stripe " + std::to_string(number);
    }

    std::string bytes() {
        constexpr size_t kEnd = offsetof(File, members) + kRoom * sizeof(Member);
        auto* const at = reinterpret_cast<unsigned char*>(&file_);
        const size_t count = 1 + below(512), first = below(kEnd - count);
        for (size_t i = first; i < first + count; i++)
            at[i] = static_cast<unsigned char>(random_());
        return std::to_string(count) + " bytes at " + std::to_string(first);
    }

    File& file_;
    const Known& known_;
    std::mt19937_64& random_;
};

}  // namespace

std::string forge(File& file, const Known& known, std::mt19937_64& random) { return Forger(file, known, random).any(); }

}  // namespace cuslice::tests::model
