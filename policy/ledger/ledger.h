#pragma once
#include <algorithm>

#include "policy/base/mutex.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/file.h"
#include "policy/ledger/folder.h"
#include "policy/ledger/header_lock.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/membership.h"
#include "policy/ledger/presence.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/queue.h"

namespace cuslice::ledger {

// Somebody who stands in the way of a reservation.
struct Holder {
    unsigned user = 0;
    std::int32_t pid = 0;                             // of the account's first member
    std::uint64_t pid_namespace = 0, start_time = 0;  // what makes the pid mean one process: see ProcessIdentity
    char command[48] = {};
    std::uint64_t since = 0;               // CLOCK_REALTIME, nanoseconds
    std::uint64_t reserved = 0, used = 0;  // bytes
};

// How much of a GPU is promised to whom, over all users.
struct Committed {
    static constexpr unsigned kMax = 64;
    Holder holders[kMax];
    unsigned count = 0, left_out = 0;
    std::uint64_t promised = 0;  // bytes: the sum over accounts of max(reserved, used)
    std::uint64_t used = 0;      // bytes that members hold
    Queue queue;                 // who waits, as this request sees it
    std::uint64_t kept = 0;      // bytes that are left, and kept for those who wait
    Waiter kept_for;             // the first of them
    bool keeps = false;          // what is left is kept for this request, which waits
    // Bytes that processes hold for which nothing is reserved, as they are in groups or rules and in no job. In no
    // other figure here.
    std::uint64_t unreserved = 0;
    // Bytes that the jobs of this request's rule may be promised beyond what they are: see reserves_under().
    std::uint64_t left_of_rule = kNoLimitBytes;

    // True if `bytes` can be reserved where `available` are left. The rule's jobs can't take what they have reserved
    // beyond its slice.
    bool fits(std::uint64_t bytes, std::uint64_t available) const { return std::min(bytes, left_of_rule) <= available; }
};

// Some accounts at one moment, as their members see them. Filled by watch().
struct Watched {
    static constexpr unsigned kMax = 512;
    std::uint64_t limit = kNoLimitBytes;  // bytes; of the account that has least left
    std::uint64_t used = 0;               // of the same
    unsigned count = 0;
    std::int32_t pids[kMax] = {};  // of all
};

enum class Joined : std::uint8_t {
    yes,
    refused,      // the reservation does not fit
    unavailable,  // no file, no room for one more, or a lock that its owner does not let go of: see LedgerError
    lost,         // the launcher made the account in another file, which is gone: see LedgerError
    unreachable,  // there is no file, and what others hold of the limit is in one, or would be: see LedgerError
};

// Description of this process for its place, asked of the kernel before anybody has to wait for it.
struct Joiner {
    explicit Joiner(const char* command);  // null: the process's own name
    ProcessIdentity process;
    char command[sizeof Member::command];
};

// One GPU's ledger: this user's file, and what can be read of the others'. Thread-safe; all waiting is bounded.
class Ledger {
  public:
    // Opens the user's file in `folder`, for a GPU of `capacity` bytes. See open_own(). `keep_over_exec`: what is
    // joined is kept for the program that this process becomes.
    bool open(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec, LedgerError* why);
    // The same for a file that is there, without making one.
    bool open_existing(const char* folder, const char* uuid, LedgerError* why);
    std::uint64_t capacity() const { return capacity_; }
    // Another file under the same name has another.
    std::uint64_t id() const {
        const DisablingLockGuard lock(mutex_);
        return open_.file->header.id;
    }
    // For a process that goes on without it. Not while it has a membership.
    void close();
    bool opened() const {
        const DisablingLockGuard lock(mutex_);
        return open_.there();
    }
    Found found() const {
        const DisablingLockGuard lock(mutex_);
        return open_.found;
    }

    // Sets the rule whose slice, of `limit` bytes, holds this process's reservations. The rule's jobs together count
    // as promised no more than the slice, whatever each has reserved. Before look() and join(); null: no rule.
    void reserves_under(const char* rule, std::uint64_t limit);

    /// Sets the most that another user's job is believed to have of the GPU, in bytes: the ceiling that the system's
    /// file sets for everybody. Before look() and join(). Whatever their ledgers say, a user's jobs together have no
    /// more than all of the GPU.
    void believes_others(std::uint64_t most_of_a_job);

    // Makes this process a member. `in_use`: bytes that are in use on the GPU by everybody, as NVML has it; 0 where
    // that is not known. On refusal `*committed` says who stands in the way and `*available` what could be had. The
    // membership has to last as long as the ledger.
    Joined join(const Request& request, std::uint64_t in_use, Membership* membership, Committed* committed,
                std::uint64_t* available, LedgerError* why);

    // Finds out what could be reserved now, and who stands in the way of more, without asking for any of it. `in_use`
    // as for join(). False where the ledger's lock can't be had. A process that waits thereby says that it still
    // does.
    bool look(std::uint64_t in_use, Committed* committed, std::uint64_t* available);

    // This process waits for so many bytes, from now on and until join() reserves something or leave_queue(): its
    // ticket says so to all others. It looks again at least every few seconds (kLooksWithin). Where all tickets are
    // taken, or the lock can't be had, it gets one when it next looks; until then it is as new each time. `command` as
    // in Request.
    void queue_up(std::uint64_t bytes, const char* command);
    void leave_queue();
    // True if this process has a ticket, and thereby a place in the queue.
    bool queued() const;
    // Nothing is to be kept for it here, as something is kept for it on another GPU.
    void step_aside(bool aside);

    // Takes back what dead members held. True if there were any. Also makes sure of this process's own places: of their
    // locks, and that the file is still there. `*why`: where nobody could look.
    bool take_back_dead(LedgerError* why = nullptr);

    // Adds what an account holds, and who its members are, to `*watched`; the dead are taken back first. False if this
    // user has no such account here.
    bool watch(AccountKind kind, const char* name, Watched* watched);

    // A group as it is now, for whoever may join it. False where the lock can't be had.
    bool look_at_group(const char* name, GroupTerms* terms);

    /// The fewest bytes that a process's first context of this kind has taken, as far as the file's users know; 0: none
    /// was seen. `kind` isn't 0.
    std::uint64_t least_context(std::uint64_t kind) const;
    /// Keeps it for processes to come, if it is news, unless the lock can't be had at once.
    void note_context(std::uint64_t kind, std::uint64_t bytes);

    // Sets an account's limit. False if this user has no such account here.
    bool set_limit(AccountKind kind, const char* name, std::uint64_t limit);

    // In a forked child: neither places nor locks are the child's, whatever the parent's threads were doing.
    void forget();

  private:
    // For a lock that is held while accounts change hands, which takes microseconds; its owner may have been stopped.
    static constexpr unsigned kPatience = 500;  // milliseconds

    // While it lives, no other thread and no other process moves accounts or members.
    class CUSLICE_SCOPED_CAPABILITY Locked {
      public:
        // Where a file was removed and no other can be made in its place (no room, something else of that name):
        // whether the removed one will do, in which the members meet until then. It does not for those who join.
        enum class Removed : bool { is_no_use, will_do };
        // `*why` says why it can't be had, and who has it.
        Locked(Ledger& ledger, const Deadline& deadline, LedgerError* why = nullptr,
               Removed removed = Removed::is_no_use) CUSLICE_ACQUIRE(ledger.mutex_);
        ~Locked() CUSLICE_RELEASE();
        Locked(const Locked&) = delete;
        Locked& operator=(const Locked&) = delete;
        explicit operator bool() const { return locked_; }

      private:
        Ledger& ledger_;
        DisablingLockGuard guard_;
        int saved_errno_;
        bool locked_ = false;
    };

    // One of this process's members.
    struct Place {
        std::uint32_t number = 0;
        Membership* membership = nullptr;  // null: the launcher's, which holds nothing
    };
    // The memory that this process waits for, and its ticket.
    struct Waiting {
        bool waits = false, placed = false;  // placed: it has a ticket
        bool aside = false;
        std::uint32_t index = 0;
        std::uint64_t bytes = 0, since = 0, order = 0;  // order: 0 until it has had a ticket
        char command[sizeof Ticket::command] = {};
    };
    // A place in an account whose reservation is not decided yet.
    struct Claim {
        File* file = nullptr;
        Account* account = nullptr;
        Place* place = nullptr;
        bool known = false;                      // the account was there before
        std::uint32_t place_in_rule = kMembers;  // that was taken for it
    };
    // A claim of another user's that comes after this one and isn't decided yet: waited for, or taken for granted.
    enum class Claims : bool { open, granted };
    enum class Step : std::uint8_t { joined, lost, failed, busy, refused, claimed };

    // The folder is there from now on, and this process in it.
    bool enter_folder(const char* folder, const char* uuid, LedgerError* why) CUSLICE_REQUIRES(mutex_);
    // Makes sure that others see that this process lives. False: they can't.
    bool keep_presence(LedgerError* why) CUSLICE_REQUIRES(mutex_);
    // Says in a member of this process which presence it has.
    void show_presence(std::uint32_t number) CUSLICE_REQUIRES(mutex_);
    void show_launchers() CUSLICE_REQUIRES(mutex_);
    void note_leftover(const char* name);
    void remove_leftovers() CUSLICE_REQUIRES(mutex_);
    // Removes the file of a process that has ended, once nothing in the ledger names it.
    void remove_presence(std::uint64_t id) CUSLICE_REQUIRES(mutex_);
    Locker locker() const CUSLICE_REQUIRES(mutex_) {
        return {where_, presence_.id(), presence_.kind(), presence_.process()};
    }
    // `rests`: no lock is waited for.
    bool find_file(const Deadline& deadline, bool rests, LedgerError* why) CUSLICE_REQUIRES(mutex_);
    void leave_folder() CUSLICE_REQUIRES(mutex_);
    void finish_file() CUSLICE_REQUIRES(mutex_);
    bool put_back(const Deadline& deadline, bool rests, LedgerError* why) CUSLICE_REQUIRES(mutex_);
    bool move_places(const OpenFile& old) CUSLICE_REQUIRES(mutex_);
    static void copy_removed(const OpenFile& old);
    Place* take_over_carried(std::uint32_t account, const Joiner& self) CUSLICE_REQUIRES(mutex_);
    std::uint32_t find_carried(std::uint32_t account, const Joiner& self) const CUSLICE_REQUIRES(mutex_);
    static void name_locker(const OpenFile& file, LedgerError* why);

    Account* find(AccountKind kind, const char* name) const CUSLICE_REQUIRES(mutex_) {
        return find_account(*open_.file, kind, name);
    }
    std::uint32_t index_of(const Account* account) const CUSLICE_REQUIRES(mutex_) {
        return static_cast<std::uint32_t>(account - open_.file->accounts);
    }
    bool is_mine(std::uint32_t number) const CUSLICE_REQUIRES(mutex_);
    bool is_dead(const Member& member, std::uint32_t number) const CUSLICE_REQUIRES(mutex_);
    bool has_members(std::uint32_t account) const CUSLICE_REQUIRES(mutex_) {
        return ledger::has_members(*open_.file, account);
    }
    std::uint32_t members() const CUSLICE_REQUIRES(mutex_) {
        return std::min<std::uint32_t>(open_.file->header.members, kMembers);
    }
    bool take_back_if_dead(std::uint32_t number) CUSLICE_REQUIRES(mutex_);
    bool take_back_dead_locked() CUSLICE_REQUIRES(mutex_);
    void take_back_some_dead_locked(const Account* account) CUSLICE_REQUIRES(mutex_);
    void tidy_accounts() CUSLICE_REQUIRES(mutex_);
    // An account that nobody is in; null: living processes have all of them.
    Account* make_account(AccountKind kind) CUSLICE_REQUIRES(mutex_);

    // A place in the account for this process, not yet living; null: there is none to be had.
    Place* take_place(const Account* account, const Joiner& self, LedgerError* why) CUSLICE_REQUIRES(mutex_);
    void adopt_launcher(const Account* account, Member* member) CUSLICE_REQUIRES(mutex_);
    void drop_place(Place* place) CUSLICE_REQUIRES(mutex_);
    // This process's place in the account, which nothing is held in.
    Place* empty_place(const Account* account) CUSLICE_REQUIRES(mutex_);
    // One in the account of the rule that it reserves under, by which others see that the job is the rule's. Its
    // number; kMembers: it has one there, or needs none, or none can be had.
    std::uint32_t enter_rule(const Joiner& self) CUSLICE_REQUIRES(mutex_);
    void leave_rule(std::uint32_t number) CUSLICE_REQUIRES(mutex_);
    void drop_claim(const Claim& claim) CUSLICE_REQUIRES(mutex_);
    Step begin(const Request& request, const Joiner& self, bool may_claim, Membership* membership, Claim* claim,
               LedgerError* why) CUSLICE_REQUIRES(mutex_);
    void enter(Account* account, Place* place, Membership* membership) CUSLICE_REQUIRES(mutex_);
    void withdraw(const Claim& claim);

    // Before the request of this number is granted.
    static void note_granted(Header& header, std::uint64_t order);
    std::uint64_t next_order() CUSLICE_REQUIRES(mutex_);
    std::uint64_t own_order() const;
    void take_ticket() CUSLICE_REQUIRES(mutex_);
    void drop_ticket() CUSLICE_REQUIRES(mutex_);
    void take_back_tickets() CUSLICE_REQUIRES(mutex_);

    void add_own(const Account* but, Committed* committed, bool* undecided) const CUSLICE_REQUIRES(mutex_);
    // Other users' files of this GPU. False if not all could be read in time: `why`, which may be null, says why not.
    bool add_foreign(const Deadline& deadline, Claims claims, Committed* committed, bool* undecided, LedgerError* why);
    std::uint64_t room(std::uint64_t in_use, Committed* committed) const CUSLICE_REQUIRES(mutex_);

    mutable Mutex mutex_{LockRank::ledger};
    OpenFile open_ CUSLICE_GUARDED_BY(mutex_);
    std::uint64_t capacity_ = 0;  // bytes
    bool keep_over_exec_ CUSLICE_GUARDED_BY(mutex_) = false;
    char folder_[kPathBytes] = {}, path_[kPathBytes] = {};
    FolderHandle folder_handle_ CUSLICE_GUARDED_BY(mutex_);
    UserFolder where_ CUSLICE_GUARDED_BY(mutex_);
    Presence presence_ CUSLICE_GUARDED_BY(mutex_);
    Presence launchers_ CUSLICE_GUARDED_BY(mutex_);  // of the launcher that became this program
    char uuid_[64] = {};
    char rule_[sizeof Account::name] CUSLICE_GUARDED_BY(mutex_) = {};  // empty: it reserves under none
    std::uint64_t rule_limit_ CUSLICE_GUARDED_BY(mutex_) = kNoLimitBytes;
    std::atomic<std::uint64_t> others_most_{kNoLimitBytes};
    Place mine_[8] CUSLICE_GUARDED_BY(mutex_) = {};
    unsigned mine_count_ CUSLICE_GUARDED_BY(mutex_) = 0;
    Waiting waiting_ CUSLICE_GUARDED_BY(mutex_);
    // Presences of this user that a look at the folder has met: one whose process ended without a place in a ledger is
    // removed by nobody else. Some of them at a time.
    std::uint64_t leftovers_[4] CUSLICE_GUARDED_BY(mutex_) = {};
    unsigned leftover_count_ CUSLICE_GUARDED_BY(mutex_) = 0;
    std::uint64_t not_before_ CUSLICE_GUARDED_BY(mutex_) =
        0;  // CLOCK_MONOTONIC, seconds: until then the lock is not waited for again
};

}  // namespace cuslice::ledger
