// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/mutex.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/caching_member.h"
#include "policy/ledger/file.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/holdings.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

// A process's request to become a member of an account.
struct Request {
    AccountKind kind = AccountKind::job;
    const char* name = "";
    uint64_t limit = kNoLimitBytes;  // bytes
    uint64_t reserved = 0;           // bytes that nobody else shall be promised meanwhile
    const char* command = nullptr;   // what people know the process by; null: its own name
    bool inner = false;              // within another account, whose reservation covers this one
    uint64_t made_in = 0;            // the id of the file in which the launcher made it; 0: not known
};

// This process's place in one account of one GPU's ledger. Reserving and giving back is lock-free but for a lock of
// this process alone, and never enters the kernel unless another thread is in the same stripe.
class Membership {
  public:
    bool there() const { return account_now() != nullptr; }
    uint64_t limit() const {
        const uint64_t said = account_now()->limit.load(std::memory_order_relaxed);
        return said >> kMaxBits ? limit_of_damaged(said) : said;
    }
    uint64_t used() const { return __atomic_load_n(&account_now()->total.bytes, __ATOMIC_RELAXED) & ~kRetired; }
    // Another file has taken the place of this one: everything is refused here until the ledger's lock is taken, with
    // which this membership goes on there.
    bool retired() const { return is_retired(account_now()->total); }
    const Account& account() const { return *account_now(); }
    // In a group: how it was when this process joined it.
    const GroupTerms& found() const { return found_; }
    uint32_t number() const { return number_; }

    // Takes `bytes` if the account's total stays within its limit less `margin`. False, and nothing has changed, if
    // not; `*seen` is the total then. Once a second it makes sure that the file is still there, and refuses if it is
    // not: whoever looks for what the dead held, as before every refusal, finds that out and moves.
    bool reserve(uint64_t bytes, uint64_t margin, uint64_t* seen);
    // The same up to so many bytes more as other members have given back to the driver and are still charged with.
    // On refusal `*more` says how many these are. `whole`: of a part's account the one of the whole GPU; see
    // holdings.h.
    bool reserve_given_back(uint64_t bytes, uint64_t margin, const Figures& figures, const Membership* whole,
                            uint64_t* more);
    // True if the total less these is within the limit.
    bool within_given_back(const Figures& figures, const Membership* whole) const;
    // How many operations this member has begun; and says that nothing of its process was in flight after so many.
    uint64_t operations() const;
    void settled_after(uint64_t operations);
    void not_settled();
    // Charges a change that is a fact already, whatever the limit; negative: given back.
    void change(int64_t bytes);
    // Gives back what was reserved and never held, because another account or the driver refused it: it leaves no trace
    // in the peak. Where another process gives something back just then, the peak has it all the same.
    void undo(uint64_t bytes);
    // The most that the account's members held at once since it was opened. Bytes.
    uint64_t peak() const { return peak_of(*account_now()); }
    // Bytes that this member holds, over all its stripes.
    uint64_t held() const;

    // This member keeps memory that it could give back, so many bytes at the moment, and will look at wanted() now and
    // then.
    void caches(uint64_t bytes);
    // How often somebody here has asked for that.
    uint32_t wanted() const { return account_now()->wanted.load(std::memory_order_relaxed); }
    // Asks for so many bytes. False if the other members that keep any do not hold as much. `*state` changes when what
    // they hold and could give back does.
    bool want(uint64_t bytes, uint64_t* state);

    /// The one of the other members with a cache that holds most.
    CachingMember largest_caching() const;

    // In a forked child: the place is the parent's.
    void forget();

  private:
    friend class AdmissionControl;
    friend class OwnPlaces;
    friend class Roster;
    class InStripe;

    // No GPU has 256 TiB: such a limit is none, or text that somebody wrote over it.
    static constexpr unsigned kMaxBits = 48;
    uint64_t limit_of_damaged(uint64_t said) const {
        return said == kNoLimitBytes ? said : __atomic_load_n(&terms_.limit, __ATOMIC_RELAXED);
    }
    // Another one once the file was lost and put back.
    Account* account_now() const { return __atomic_load_n(&account_, __ATOMIC_ACQUIRE); }
    // Takes note of the account's terms, in case that the file is lost.
    void remember();
    // Goes on in another file, in `number` of account `index`, with what is held here. Under the ledger's lock.
    void move_to(const OpenFile& file, uint32_t index, uint32_t number) CUSLICE_UNCHECKED;  // in loops
    Holdings look_at_members(const Membership* whole) const;
    bool unchanged(const Holdings& then) const;
    // The file has been looked for; a stripe's mutex is held.
    bool is_lost() const;

    Account* account_ = nullptr;
    OpenFile open_;               // as it was when this place was taken
    const char* path_ = nullptr;  // the ledger's
    File* file_ = nullptr;
    Stripe* stripes_ = nullptr;
    uint32_t number_ = 0;
    const Stripe* own_ = nullptr;  // this member's among them, in one word: read without a lock
    Terms terms_;
    GroupTerms found_;
    struct alignas(64) StripeMutex {
        Mutex mutex{LockRank::stripe};
    };
    mutable StripeMutex mutexes_[kStripes];
};

}  // namespace cuslice::ledger
