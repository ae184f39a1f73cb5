// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/committed.h"
#include "policy/ledger/membership.h"
#include "policy/ledger/roster.h"

namespace cuslice::ledger {

enum class Joined : uint8_t {
    yes,
    refused,      // the reservation does not fit
    unavailable,  // no file, no room for one more, or a lock that its owner does not let go of: see LedgerError
    lost,         // the launcher made the account in another file, which is gone: see LedgerError
    unreachable,  // there is no file, and what others hold of the limit is in one, or would be: see LedgerError
};

/// Decides who gets memory of a GPU: joining an account, looking at what is left, and waiting in the queue for more. As
/// Ledger has them. Thread-safe; all waiting is bounded.
class AdmissionControl {
  public:
    AdmissionControl() = default;
    AdmissionControl(const AdmissionControl&) = delete;
    AdmissionControl& operator=(const AdmissionControl&) = delete;

    Roster roster;

    void reserves_under(const char* rule, uint64_t limit);
    void believes_others(uint64_t most_of_a_job);

    Joined join(const Request& request, uint64_t in_use, Membership* membership, Committed* committed,
                uint64_t* available, LedgerError* why);
    bool look(uint64_t in_use, Committed* committed, uint64_t* available);

    void queue_up(uint64_t bytes, const char* command);
    void leave_queue();
    bool queued() const;
    void step_aside(bool aside);

  private:
    // A place in an account whose reservation is not decided yet.
    struct Claim {
        File* file = nullptr;
        Account* account = nullptr;
        OwnPlace* place = nullptr;
        bool known = false;                 // the account was there before
        uint32_t place_in_rule = kMembers;  // that was taken for it
    };
    enum class Step : uint8_t { joined, lost, failed, busy, refused, claimed };

    Step begin(const Request& request, const Joiner& self, bool may_claim, Membership* membership, Claim* claim,
               LedgerError* why) CUSLICE_REQUIRES(roster.file.mutex());
    void enter(Account* account, OwnPlace* place, Membership* membership) CUSLICE_REQUIRES(roster.file.mutex());
    // Takes a place in the account of the rule that it reserves under, by which others see that the job is the rule's.
    // Its number; kMembers: it has one there, or needs none, or none can be had.
    uint32_t enter_rule(const Joiner& self) CUSLICE_REQUIRES(roster.file.mutex());
    void drop_claim(const Claim& claim) CUSLICE_REQUIRES(roster.file.mutex());
    void withdraw(const Claim& claim);

    uint64_t own_order() const;
    void add_own(const Account* but, Committed* committed, bool* undecided) CUSLICE_REQUIRES(roster.file.mutex());
    uint64_t room(uint64_t in_use, Committed* committed) CUSLICE_REQUIRES(roster.file.mutex());

    // Empty: it reserves under none.
    char rule_[sizeof Account::name] CUSLICE_GUARDED_BY(roster.file.mutex()) = {};
    uint64_t rule_limit_ CUSLICE_GUARDED_BY(roster.file.mutex()) = kNoLimitBytes;
    std::atomic<uint64_t> others_most_{kNoLimitBytes};
};

}  // namespace cuslice::ledger
