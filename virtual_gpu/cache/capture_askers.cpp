// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/capture_askers.h"

#include <cerrno>
#include <ctime>

namespace cuslice {

constinit CaptureAskers::Asker CaptureAskers::nobody_;
constinit std::atomic<bool> CaptureAskers::refused_{false};
constinit thread_local CaptureAskers::Asker* CaptureAskers::own_ = &CaptureAskers::nobody_;
constinit thread_local CaptureAskers::Asker* CaptureAskers::kept_ = nullptr;

void CaptureAskers::enter() {
    leave();
    inside_.push_back({own_thread(), false});
}

void CaptureAskers::leave() {
    leave_at_once(own_);
    for (size_t i = inside_.size(); i-- > 0;)
        if (inside_[i].thread == own_thread())
            inside_.remove_at(i);
}

bool CaptureAskers::list() {
    if (is_listed())
        return true;
    Asker* const made = records_.take();
    if (!made)
        return false;
    made->next = first_;
    first_ = made;
    own_ = made;
    return true;
}

void CaptureAskers::choose_asynchronous(bool asynchronous) {
    if (asynchronous && own_ != &nobody_) {
        kept_ = own_;
        own_ = &nobody_;
    } else if (!asynchronous && kept_) {
        own_ = kept_;
        kept_ = nullptr;
    }
}

void CaptureAskers::unlist() {
    choose_asynchronous(false);
    leave();
    if (own_ == &nobody_)
        return;
    for (Asker** link = &first_; *link; link = &(*link)->next) {
        if (*link != own_)
            continue;
        *link = own_->next;
        records_.give_back(own_);
        break;
    }
    own_ = &nobody_;
}

bool CaptureAskers::keep_out() {
    for (Asker* asker = first_; asker; asker = asker->next)
        asker->by_lock.store(true, std::memory_order_seq_cst);
    return first_;
}

// A thread that went on without the barrier has its store in flight for some nanoseconds at most.
void CaptureAskers::wait_for_barrier() {
    if (OwnerLock::barrier_in_all())
        return;
    if (refused_.load(std::memory_order_relaxed))
        return;
    const int saved_errno = errno;
    timespec pause{0, 1'000'000};
    while (nanosleep(&pause, &pause) != 0) {
    }
    errno = saved_errno;
    refused_.store(true, std::memory_order_relaxed);
}

void CaptureAskers::let_in() {
    if (!OwnerLock::asymmetric())
        return;
    for (Asker* asker = first_; asker; asker = asker->next)
        asker->by_lock.store(false, std::memory_order_release);
}

bool CaptureAskers::any_inside() {
    for (const Asker* asker = first_; asker; asker = asker->next)
        if (asker != own_ && asker->inside.load(std::memory_order_seq_cst) == kInside)
            return true;
    for (const Inside& one : inside_)
        if (one.thread != own_thread() && !one.given_up)
            return true;
    return false;
}

void CaptureAskers::give_up() {
    for (Asker* asker = first_; asker; asker = asker->next) {
        uint32_t inside = kInside;
        asker->inside.compare_exchange_strong(inside, kGivenUp, std::memory_order_relaxed);
    }
    for (Inside& one : inside_)
        one.given_up = true;
}

void CaptureAskers::forget_all() {
    first_ = nullptr;
    own_ = &nobody_;
    kept_ = nullptr;
    inside_.release();
}

}  // namespace cuslice
