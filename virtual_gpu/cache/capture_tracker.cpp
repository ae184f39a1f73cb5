// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/capture_tracker.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "policy/base/cancellation.h"
#include "policy/base/kernel_clock.h"
#include "virtual_gpu/gpu/current_context.h"

namespace cuslice {

namespace {

// Its address is the thread's own.
constinit thread_local char this_thread = 0;

}  // namespace

bool CaptureTracker::Entry::is(const Entry& other) const {
    return stream == other.stream && (!is_default(stream) || (context == other.context && thread == other.thread));
}

// The legacy stream can't be captured: by whatever default handle, it is the thread's.
CaptureTracker::Entry CaptureTracker::entry_of(CUstream stream) {
    Entry entry{stream, nullptr, &this_thread, 0, By::known};
    if (is_default(stream))
        entry.stream = CU_STREAM_PER_THREAD;
    if (is_default(stream) || CUSLICE_REAL(cuStreamGetCtx)(stream, &entry.context) != CUDA_SUCCESS)
        CUSLICE_REAL(cuCtxGetCurrent)(&entry.context);
    return entry;
}

// Before the driver's call: a free of another thread must not ask the GPU in between. That of a stream which is
// captured already will fail, and change nothing.
void CaptureTracker::may_begin(CUstream stream, By function) {
    const DisableCancellation uncancelled;
    Entry entry = entry_of(stream);
    entry.function = function;
    bool unsure = false;
    {
        LockGuard lock(mutex_);
        note(&entry);
        unsure = askers_.keep_out();
    }
    if (unsure)
        CaptureAskers::wait_for_barrier();
    wait_for_askers();
}

void CaptureTracker::note(Entry* entry) {
    entry->moment = ++last_;
    for (Entry& there : streams_) {
        if (!there.is(*entry))
            continue;
        there.moment = entry->moment;
        if (entry->function == By::unknown)
            there.function = entry->function;
        return;
    }
    if (streams_.push_back(*entry))
        count_.store(streams_.size(), std::memory_order_release);
}

bool CaptureTracker::others_inside() {
    LockGuard lock(mutex_);
    return askers_.any_inside();
}

// They are told by nobody that one is out, as that would cost each of them an atomic operation.
void CaptureTracker::wait_for_askers() {
    constexpr unsigned kYields = 100;
    constexpr long kPause = 100'000;  // nanoseconds
    if (!others_inside())
        return;
    const int saved_errno = errno;
    const uint64_t since = kernel_clock(CLOCK_MONOTONIC);
    for (unsigned tries = 0; others_inside(); tries++) {
        if (kernel_clock(CLOCK_MONOTONIC) - since >= patience_) {
            LockGuard lock(mutex_);
            askers_.give_up();
            break;
        }
        const timespec pause{0, kPause};
        tries < kYields ? static_cast<void>(sched_yield()) : static_cast<void>(nanosleep(&pause, nullptr));
    }
    errno = saved_errno;
}

bool CaptureTracker::enter_if_none() {
    LockGuard lock(mutex_);
    if (streams_.size() != 0)
        return false;
    askers_.enter();
    return true;
}

bool CaptureTracker::enter(Asking::Sure sure) {
    while (!enter_if_none())
        if (any_still(sure == Asking::Sure::yes))
            return false;
    return true;
}

void CaptureTracker::leave() {
    LockGuard lock(mutex_);
    askers_.leave();
}

bool CaptureTracker::list_thread() {
    if (CaptureAskers::is_listed())
        return false;
    LockGuard lock(mutex_);
    if (!askers_.list())
        return false;
    if (streams_.size() == 0)
        askers_.let_in();
    return true;
}

void CaptureTracker::thread_ends() {
    LockGuard lock(mutex_);
    askers_.unlist();
}

void CaptureTracker::began(CUstream stream) { note_seen(entry_of(stream)); }

void CaptureTracker::failed(CUstream stream) {
    Entry entry = entry_of(stream);
    entry.moment = moment();
    if (!goes_on(entry))
        ended(stream, entry.moment);
}

// The stream may be no more: only of the default ones anything is asked.
void CaptureTracker::ended(CUstream stream, uint64_t moment) {
    if (none_known())
        return;
    const Entry ended = is_default(stream) ? entry_of(stream) : Entry{stream, nullptr, nullptr, 0, By::known};
    remove([&](const Entry& entry) { return entry.is(ended) && entry.moment <= moment; });
}

bool CaptureTracker::any_still(bool for_sure) {
    for (;;) {
        Entry first{};
        {
            LockGuard lock(mutex_);
            drop_own();
            if (streams_.size() == 0)
                return false;
            first = streams_[0];
            if (first.ending || (first.function == By::known && !for_sure))
                return true;
            // Without memory to write it down in, whoever ends the stream doesn't wait: nothing is asked then.
            if (!asked_.push_back({first.stream, own_thread()}))
                return true;
            asking_.store(asked_.size(), std::memory_order_release);
        }
        const bool still = goes_on(first);
        {
            LockGuard lock(mutex_);
            drop_own();
        }
        if (still)
            return true;
        remove([&](const Entry& entry) { return entry.is(first) && entry.moment == first.moment; });
    }
}

// With the lock held.
void CaptureTracker::drop_own() {
    const size_t before = asked_.size();
    for (size_t i = before; i-- > 0;)
        if (asked_[i].thread == own_thread())
            asked_.remove_at(i);
    if (asked_.size() == before)
        return;
    asking_.store(asked_.size(), std::memory_order_release);
    answers_.happened();
}

void CaptureTracker::forget_own() {
    LockGuard lock(mutex_);
    drop_own();
    askers_.leave();
}

void CaptureTracker::forget_all() {
    LockGuard lock(mutex_);
    askers_.forget_all();
    asked_.release();
    asking_.store(0, std::memory_order_release);
}

void CaptureTracker::ends(CUstream stream) {
    for (;;) {
        uint32_t since;
        {
            LockGuard lock(mutex_);
            drop_own();
            for (Entry& entry : streams_)
                if (entry.stream == stream)
                    entry.ending = true;
            bool asked = false;
            for (const Asked& one : asked_)
                asked = asked || one.stream == stream;
            if (!asked)
                return;
            since = answers_.now();
        }
        answers_.wait(since);
    }
}

void CaptureTracker::ended_or_not(CUstream stream, bool has_ended, uint64_t moment) {
    if (has_ended)
        return ended(stream, moment);
    LockGuard lock(mutex_);
    for (Entry& entry : streams_)
        if (entry.stream == stream)
            entry.ending = false;
}

void CaptureTracker::note_seen(const Entry& entry) {
    LockGuard lock(mutex_);
    for (Entry& there : streams_)
        if (there.is(entry))
            there.seen = true;
}

bool CaptureTracker::is_noted(const Entry& entry) {
    LockGuard lock(mutex_);
    return std::any_of(streams_.begin(), streams_.end(), [&](const Entry& there) { return there.is(entry); });
}

// Without the lock, as the driver is asked: it documents that this ends no capture. The stream is kept from ending
// (asked_), or is this thread's own. What another thread is about to begin may not have begun; one's own has, or it has
// failed.
bool CaptureTracker::goes_on(const Entry& entry) {
    const bool own = entry.thread == &this_thread;
    if (is_default(entry.stream) && !own)
        return true;  // another thread has another stream by this handle
    const NamedContext during(entry.context, NamedContext::Of::any);
    // The context may have ended as it was waited for, and taken the capture with it.
    if (!during || !is_noted(entry))
        return false;
    PushedContext pushed;
    if (!during.is_current() && !pushed.push(entry.context))
        return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    const CUresult result = CUSLICE_REAL(cuStreamIsCapturing)(entry.stream, &status);
    if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)
        return !own && !entry.seen;
    if (result == CUDA_SUCCESS && !entry.seen)
        note_seen(entry);
    return result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace cuslice
