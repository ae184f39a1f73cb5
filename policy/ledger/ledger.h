#pragma once
#include "policy/ledger/file.h"
#include "policy/ledger/liveness.h"
#include "policy/mutex.h"

namespace cuslice::ledger {

inline constexpr std::uint64_t kNoLimitBytes = ~0ull;

// What a process wants to be a member of.
struct Request {
    AccountKind kind = AccountKind::job;
    const char* name = "";
    std::uint64_t limit = kNoLimitBytes;  // bytes
    std::uint64_t reserved = 0;           // bytes that nobody else shall be promised meanwhile
    const char* command = nullptr;        // what people know the process by; null: its own name
    bool inner = false;                   // within another account, whose reservation covers this one
};

// Somebody who stands in the way of a reservation.
struct Holder {
    unsigned user = 0;
    std::int32_t pid = 0;  // of the account's first member
    char command[48] = {};
    std::uint64_t since = 0;               // CLOCK_REALTIME, nanoseconds
    std::uint64_t reserved = 0, used = 0;  // bytes
};

// How much of a GPU is promised to whom, over all users.
struct Committed {
    static constexpr unsigned kMost = 64;
    Holder holders[kMost];
    unsigned count = 0, left_out = 0;
    std::uint64_t promised = 0;  // bytes: the sum over accounts of max(reserved, used)
    std::uint64_t used = 0;      // bytes that members hold
};

// Some accounts at one moment, as their members see them. Filled by watch().
struct Watched {
    static constexpr unsigned kMost = 512;
    std::uint64_t limit = kNoLimitBytes;  // bytes; of the account that has least left
    std::uint64_t used = 0;               // of the same
    unsigned count = 0;
    std::int32_t pids[kMost] = {};  // of all
};

enum class Joined : std::uint8_t {
    yes,
    refused,      // the reservation does not fit
    unavailable,  // no file, no room for one more, or a lock that its owner does not let go of: see Failure
};

// This process's place in one account of one GPU's ledger. Reserving and giving back is lock-free but for a lock of
// this process alone, and never enters the kernel unless another thread is in the same lane.
class Membership {
  public:
    bool there() const { return account_ != nullptr; }
    std::uint64_t limit() const { return account_->limit.load(std::memory_order_relaxed); }
    std::uint64_t used() const { return __atomic_load_n(&account_->total.bytes, __ATOMIC_RELAXED); }
    const Account& account() const { return *account_; }
    std::uint32_t number() const { return number_; }

    // Takes `bytes` if the account's total stays within its limit less `margin`. False, and nothing has changed, if
    // not; `*seen` is the total then.
    bool reserve(std::uint64_t bytes, std::uint64_t margin, std::uint64_t* seen);
    // What is a fact already, whatever the limit; negative: given back.
    void change(std::int64_t bytes);
    // What this member holds, over all its lanes.
    std::uint64_t held() const;

    // This member keeps memory that it could give back, so many bytes at the moment, and will look at wanted() now and
    // then.
    void caches(std::uint64_t bytes);
    // How often somebody here has asked for that.
    std::uint32_t wanted() const { return account_->wanted.load(std::memory_order_relaxed); }
    // Asks for so many bytes. False if the other members that keep any do not hold as much. `*state` changes when what
    // they hold and could give back does.
    bool want(std::uint64_t bytes, std::uint64_t* state);

    // In a forked child: the place is the parent's.
    void forget();

  private:
    friend class Ledger;
    class InLane;
    std::uint64_t held_by(std::uint32_t member) const;

    Account* account_ = nullptr;
    File* file_ = nullptr;
    Lane* lanes_ = nullptr;
    std::uint32_t number_ = 0;
    struct alignas(64) LaneMutex {
        Mutex mutex;
    };
    LaneMutex mutexes_[kLanes];
};

// One GPU's ledger: this user's file, and what can be read of the others'. Thread-safe; all waiting is bounded.
class Ledger {
  public:
    // Opens the user's file in `folder`, for a GPU of `capacity` bytes. See open_own().
    bool open(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec, Failure* why);
    // The same for a file that is there, without making one.
    bool open_existing(const char* folder, const char* uuid, Failure* why);
    std::uint64_t capacity() const { return open_.file->header.capacity; }
    // For a process that goes on without it. Not while it has a membership.
    void close();
    bool opened() const { return open_.there(); }
    Found found() const { return open_.found; }

    // Makes this process a member. If it is one of this account already (the launcher that became this program took the
    // place), it goes on with that. `in_use`: bytes that are in use on the GPU by everybody, as NVML has it; 0 where
    // that is not known. On refusal `*committed` says who stands in the way and `*available` what could be had.
    Joined join(const Request& request, std::uint64_t in_use, Membership* membership, Committed* committed,
                std::uint64_t* available, Failure* why);

    // What could be reserved at this moment, and who stands in the way of more, without asking for any of it. `in_use`
    // as for join(). False where the ledger's lock can't be had.
    bool look(std::uint64_t in_use, Committed* committed, std::uint64_t* available);

    // Takes back what dead members held. True if there were any. Also makes sure of this process's own locks.
    bool take_back_dead();

    // Adds what an account holds, and who its members are, to `*watched`; the dead are taken back first. False if this
    // user has no such account here.
    bool watch(AccountKind kind, const char* name, Watched* watched);

    // Sets an account's limit. False if this user has no such account here.
    bool set_limit(AccountKind kind, const char* name, std::uint64_t limit);

    // In a forked child: neither places nor locks are the child's, whatever the parent's threads were doing.
    void forget();

  private:
    class Locked;
    Account* find(AccountKind kind, const char* name) const;
    bool take_back_dead_locked();
    bool has_members(std::uint32_t account) const;
    void add_up(const Account* but, std::uint64_t in_use, Committed* committed, std::uint64_t* available);
    void add_own(Committed* committed, const Account* but) const;
    void add_foreign(Committed* committed, bool* undecided, std::uint64_t ticket) const;

    Mutex mutex_;
    OpenFile open_;
    char folder_[kPathBytes] = {};
    char uuid_[64] = {};
    std::uint32_t mine_[8] = {};  // numbers of this process's members
    unsigned mine_count_ = 0;
};

}  // namespace cuslice::ledger
