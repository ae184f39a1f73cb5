// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "policy/budget/limit_error.h"
#include "policy/ledger/ledger.h"

namespace cuslice {

// One process's memory in accounts that it shares with others: its job's, an outer job's, a group's, a rule's. A
// reservation is made in all of them or in none. Thread-safe once joined; joining is the caller's to serialise.
class SharedBudget {
  public:
    static constexpr unsigned kMax = 5;

    // True if it has an account of its own, or lies in a budget that has one.
    bool joined() const { return joined_.load(std::memory_order_acquire); }

    // Becomes a member of one more account of `ledger`, which is open.
    ledger::Joined join(ledger::Ledger& ledger, const ledger::Request& request, uint64_t in_use,
                        ledger::Committed* committed, uint64_t* available, ledger::LedgerError* why);

    // Counts the bytes in these accounts in those of `outer`, too: a part's of a GPU in the whole GPU's. Before any
    // reservation; `outer` has joined its own.
    void lies_in(SharedBudget& outer) {
        outer_ = &outer;
        joined_.store(true, std::memory_order_release);
    }

    // Bytes of every account's limit that are kept free for what the driver takes by itself. Not those of `outer`,
    // which has a margin of its own.
    void set_margin(uint64_t bytes) { margin_.store(bytes, std::memory_order_relaxed); }

    bool reserve(uint64_t bytes, LimitError* why);
    // The same, where what other members have given back to the driver counts as free, by `figures`. What was found is
    // looked at again after the reservation, which is undone if it was no longer so. Asks NVML: no lock may be held.
    // On refusal that is taken off what `why` has in use.
    bool reserve_given_back(uint64_t bytes, const ledger::Figures& figures, LimitError* why);
    // False if some account holds more than its limit without what other members have given back to the driver, too.
    bool within_given_back(const ledger::Figures& figures) const;
    // How many operations there have been in each account; and says there that nothing was in flight after these.
    struct Operations {
        uint64_t count[kMax] = {};
    };
    Operations operations() const;
    void settled_after(const Operations& operations);
    void not_settled();
    // A fact already, whatever the limits; negative: given back.
    void change(int64_t bytes);
    // Takes back a reservation that comes to nothing; see Membership.
    void undo(uint64_t bytes);

    // The smallest limit of all accounts, and what could be had in each of them, less the margin: as things stand, and
    // once `given_back` of what this process is charged with has gone back. Bytes.
    uint64_t limit() const;
    uint64_t room() const;
    uint64_t room_after(uint64_t given_back) const;
    // True if an account's file is gone and another one is in its place, in which this process is not yet.
    bool retired() const;
    // The most that the innermost job's processes held at once, over all of them. Bytes; 0: it is in no job.
    uint64_t job_peak() const;
    // True if some account holds more than its limit, with `why` filled.
    bool over(LimitError* why) const;

    // How this process found the group that it joined; null: it is in none.
    const ledger::GroupTerms* found_group() const;

    // See Membership: over all accounts.
    void caches(uint64_t bytes);
    uint32_t wanted() const;
    // See Membership: the largest of all accounts.
    ledger::CachingMember largest_caching() const;
    // Asks the others for what is missing to reserve `bytes`. False if they could not give back so much.
    bool want(uint64_t bytes, uint64_t* state);

    // In a forked child, whose places these are not.
    void forget();

  private:
    std::span<ledger::Membership> members() { return {members_, count_.load(std::memory_order_acquire)}; }
    std::span<const ledger::Membership> members() const { return {members_, count_.load(std::memory_order_acquire)}; }
    // Visits the budget's accounts, and then those of each that it lies in.
    template <typename Budget, typename Visit>
    static void visit_all(Budget* budget, Visit visit);
    uint64_t room_within(uint64_t least, uint64_t given_back) const;

    static LimitOf of(const ledger::Membership& member) {
        const ledger::AccountKind kind = member.account().kind;
        if (kind == ledger::AccountKind::rule)
            return LimitOf::rule;
        return kind == ledger::AccountKind::group ? LimitOf::group : LimitOf::job;
    }
    static LimitError refusal(const ledger::Membership& member, uint64_t bytes, uint64_t used, uint64_t margin);
    bool reserve_here(uint64_t bytes, LimitError* why);
    // Takes the reservation back from the accounts before the one that hasn't room for it, and fills in the reason.
    void refuse(unsigned by, uint64_t bytes, uint64_t seen, LimitError* why);
    // Takes a reservation back from the first so many accounts.
    void undo_first(size_t count, uint64_t bytes);
    // The same job's account on the whole GPU, for a part's account; null for any other.
    const ledger::Membership* whole(const ledger::Membership& member) const;
    bool ask(uint64_t bytes, bool* asked, uint64_t* state);

    SharedBudget* outer_ = nullptr;
    ledger::Membership members_[kMax];
    std::atomic<unsigned> count_{0};
    std::atomic<bool> joined_{false};
    std::atomic<uint64_t> margin_{0};
};

}  // namespace cuslice
