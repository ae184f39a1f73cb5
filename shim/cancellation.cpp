// SPDX-License-Identifier: Apache-2.0
#include "shim/cancellation.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <new>

#include "policy/allocator/owner_lock.h"
#include "policy/base/mutex.h"
#include "policy/base/table_memory.h"
#include "virtual_gpu/cache/capture_askers.h"
#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice {

namespace {

// A chain of tables, with all threads that have been in such a hook or were asked to end.
struct RecordTable {
    CancellationRecord records[63];
    RecordTable* next = nullptr;
};
constinit RecordTable first_table;  // under records_mutex, but for what a thread writes into its own

enum class CancellationWays : int { not_known, by_records, by_calls };
constinit std::atomic<CancellationWays> ways{CancellationWays::not_known};

using SetType = int (*)(int, int*);

// Remembered: a thread that can be cancelled at any time is not to be so in the loader.
SetType real_set_type() {
    static constinit std::atomic<SetType> known{nullptr};
    SetType real = known.load(std::memory_order_relaxed);
    if (!real) {
        real = reinterpret_cast<SetType>(next_function("pthread_setcanceltype"));
        known.store(real, std::memory_order_relaxed);
    }
    return real;
}

using Cancel = int (*)(pthread_t);

int cancel_now(pthread_t thread) {
    const auto real = reinterpret_cast<Cancel>(next_function("pthread_cancel"));
    return real ? real(thread) : ENOSYS;
}

// Ours has to be the one that programs find, which it isn't where the library was opened late, or a sanitizer has its
// own; and a store has to be enough on the thread's side.
CancellationWays find_ways() {
    if (Libdl::dlsym(RTLD_DEFAULT, "pthread_cancel") != reinterpret_cast<void*>(pthread_cancel))
        return CancellationWays::by_calls;
    if (!OwnerLock::asymmetric())
        OwnerLock::prepare();
    return OwnerLock::asymmetric() ? CancellationWays::by_records : CancellationWays::by_calls;
}

bool by_records() {
    CancellationWays known = ways.load(std::memory_order_relaxed);
    if (known == CancellationWays::not_known)
        ways.store(known = find_ways(), std::memory_order_relaxed);
    return known == CancellationWays::by_records;
}

// Over who gets which record, and over what is asked of a thread that was in no hook yet.
constinit Mutex records_mutex{LockRank::cancellations};

CancellationRecord* find_record(pthread_t thread) CUSLICE_REQUIRES(records_mutex) {
    for (RecordTable* all = &first_table; all; all = all->next)
        for (CancellationRecord& record : all->records)
            if (record.thread.load(std::memory_order_relaxed) == thread)
                return &record;
    return nullptr;
}

// Null if the kernel gives no memory.
CancellationRecord* make_record(pthread_t thread) CUSLICE_REQUIRES(records_mutex) {
    if (CancellationRecord* there = find_record(thread))
        return there;
    CancellationRecord* unused = find_record(0);
    if (!unused) {
        void* const memory = take_table_memory(sizeof(RecordTable));
        if (!memory)
            return nullptr;
        auto* const more = new (memory) RecordTable;
        more->next = first_table.next;
        first_table.next = more;
        unused = &more->records[0];
    }
    unused->thread.store(thread, std::memory_order_relaxed);
    return unused;
}

// A thread that has ended, maybe in a hook, by a cancellation that wasn't ours: whoever has its name now is another.
void start_anew(CancellationRecord& record) CUSLICE_REQUIRES(records_mutex) {
    record.id.store(0, std::memory_order_relaxed);
    record.held.store(false, std::memory_order_relaxed);
    record.asked.store(CancellationRecord::Asked::never, std::memory_order_relaxed);
}

// In doubt, as where a sandbox refuses the question, it is.
bool is_alive(int32_t thread) {
    const int saved_errno = errno;
    const bool alive = syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;
    errno = saved_errno;
    return alive;
}

int32_t this_thread() { return static_cast<int32_t>(syscall(SYS_gettid)); }

// For the calling thread. Null if the kernel gives no memory.
CancellationRecord* own_record() {
    const DisableCancellation locked;
    LockGuard lock(records_mutex);
    CancellationRecord* const record = make_record(pthread_self());
    if (!record)
        return nullptr;
    if (record->id.load(std::memory_order_relaxed) != 0)
        start_anew(*record);
    record->id.store(this_thread(), std::memory_order_relaxed);
    return record;
}

// From now on the thread sees that it is asked to end when it begins a hook. Null if the kernel gives no memory.
CancellationRecord* ask(pthread_t thread) {
    const DisableCancellation locked;
    LockGuard lock(records_mutex);
    CancellationRecord* const record = make_record(thread);
    if (!record)
        return nullptr;
    const int32_t id = record->id.load(std::memory_order_relaxed);
    if (id != 0 && !is_alive(id))
        start_anew(*record);
    record->asked.store(CancellationRecord::Asked::pending, std::memory_order_seq_cst);
    return record;
}

// Only one of those that find it pending delivers it.
bool take(CancellationRecord& record) {
    auto expected = CancellationRecord::Asked::pending;
    return record.asked.compare_exchange_strong(expected, CancellationRecord::Asked::delivered,
                                                std::memory_order_acq_rel);
}

// A thread whose hook has begun before it could see what is asked of it is seen to be in there after this.
void let_stores_be_seen() {
    if (OwnerLock::barrier_in_all())
        return;
    const int saved_errno = errno;
    timespec pause{0, 1'000'000};
    while (nanosleep(&pause, &pause) != 0) {
    }
    errno = saved_errno;
}

// Longer than a signal takes to its thread. Beyond it, the record says of an earlier thread of this name that it was
// asked.
constexpr unsigned kYields = 10'000;

// Its signal isn't here yet: whoever cancels this thread has found it asynchronous. Nothing of ours is in progress.
void await_end_if_asked() {
    CancellationRecord* const record = HeldCancellation::record();
    if (!record || record->asked.load(std::memory_order_acquire) != CancellationRecord::Asked::delivered)
        return;
    int state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    for (unsigned i = 0; state == PTHREAD_CANCEL_ENABLE && i < kYields; ++i) {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
        sched_yield();
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
    }
    pthread_setcancelstate(state, nullptr);
    if (state == PTHREAD_CANCEL_ENABLE)
        record->asked.store(CancellationRecord::Asked::never, std::memory_order_relaxed);
}

void choose_asynchronous(bool asynchronous) {
    HeldCancellation::choose_asynchronous(asynchronous);
    CaptureAskers::choose_asynchronous(asynchronous);
}

}  // namespace

void watch_cancellation_types() {
    if (Libdl::dlsym(RTLD_DEFAULT, "pthread_setcanceltype") != reinterpret_cast<void*>(pthread_setcanceltype))
        return;
    real_set_type();
    auto expected = Asynchronous::not_known;
    asynchronous_threads.compare_exchange_strong(expected, Asynchronous::none, std::memory_order_relaxed);
    end_if_cancelled.store(await_end_if_asked, std::memory_order_relaxed);
    if constexpr (LockOrder::kChecked)
        LockOrder::watch_cancellation(HeldCancellation::held_by_record);
}

constinit thread_local CancellationRecord* HeldCancellation::own_ = nullptr;
constinit thread_local CancellationRecord* HeldCancellation::kept_ = nullptr;
constinit thread_local bool HeldCancellation::asynchronous_ = false;

CancellationRecord* HeldCancellation::record() {
    if (own_)
        return own_;
    if (!kept_ && by_records())
        kept_ = own_record();
    return kept_;
}

bool HeldCancellation::held_by_record() { return own_ && own_->held.load(std::memory_order_relaxed); }

void HeldCancellation::choose_asynchronous(bool asynchronous) {
    asynchronous_ = asynchronous;
    if (asynchronous && own_) {
        kept_ = own_;
        own_ = nullptr;
    } else if (!asynchronous && kept_) {
        own_ = kept_;
        kept_ = nullptr;
    }
}

[[gnu::noinline]] void HeldCancellation::begin_slowly() {
    record_ = asynchronous_ ? nullptr : record();
    if (!record_)
        return begin_by_calls();
    own_ = record_;
    kept_ = nullptr;
    hold();
}

[[gnu::noinline]] void HeldCancellation::call() {
    called_ = true;
    calls_.begin();
}

[[gnu::noinline]] void HeldCancellation::end_slowly() {
    if (called_)
        calls_.end();
    if (!before_ && take(*record_))
        cancel_now(pthread_self());
}

}  // namespace cuslice

// Sees which threads can be cancelled asynchronously: see asynchronous_threads.
extern "C" __attribute__((visibility("default"))) int pthread_setcanceltype(int type, int* before) {
    using namespace cuslice;
    const SetType real = real_set_type();
    if (!real)
        return ENOSYS;
    if (type != PTHREAD_CANCEL_ASYNCHRONOUS) {
        const int result = real(type, before);
        if (result == 0)
            choose_asynchronous(false);
        return result;
    }
    // Before it can be cancelled so.
    asynchronous_threads.store(Asynchronous::seen, std::memory_order_relaxed);
    choose_asynchronous(true);
    return real(type, before);
}

// Ends a thread that is in a hook when it leaves that: see HeldCancellation.
extern "C" __attribute__((visibility("default"))) int pthread_cancel(pthread_t thread) {
    using namespace cuslice;
    if (ways.load(std::memory_order_relaxed) == CancellationWays::by_calls)
        return cancel_now(thread);
    CancellationRecord* const record = ask(thread);
    if (!record)
        return cancel_now(thread);
    // Otherwise no thread has begun such a hook yet, and each sees this before it does.
    if (ways.load(std::memory_order_relaxed) == CancellationWays::by_records)
        let_stores_be_seen();
    if (record->held.load(std::memory_order_seq_cst))
        return 0;
    return take(*record) ? cancel_now(thread) : 0;
}
