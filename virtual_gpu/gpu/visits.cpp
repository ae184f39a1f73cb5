// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/visits.h"

namespace cuslice {

namespace {

template <typename Row, typename Which>
bool any(const PageVector<Row>& rows, Which which) {
    for (const Row& row : rows)
        if (which(row))
            return true;
    return false;
}

template <typename Row, typename Which>
bool remove(PageVector<Row>& rows, Which which) {
    const size_t before = rows.size();
    for (size_t i = before; i-- > 0;)
        if (which(rows[i]))
            rows.remove_at(i);
    return rows.size() != before;
}

}  // namespace

// With the lock held.
void Visits::drop_pin(uintptr_t thread) {
    if (remove(pins_, [&](const Pin& pin) { return pin.thread == thread; }) && ends_.size())
        changes_.happened();
}

bool Visits::enter(const void* what, bool takes) {
    const uintptr_t self = own_thread();
    const auto stands_in_the_way = [&](const End& end) { return takes || end.what == what; };
    for (;;) {
        uint32_t since;
        {
            const LockGuard lock(mutex_);
            drop_pin(self);
            if (!any(ends_, stands_in_the_way)) {
                // Without memory to write it down in there is no pin, and whoever ends the context takes the risk.
                pins_.push_back({what, self, takes});
                return true;
            }
            if (any(ends_, [&](const End& end) { return end.thread == self && stands_in_the_way(end); }))
                return false;
            since = changes_.now();
        }
        changes_.wait(since);
    }
}

void Visits::leave() {
    const LockGuard lock(mutex_);
    drop_pin(own_thread());
}

void Visits::begin_end(const void* what) {
    const uintptr_t self = own_thread();
    const auto of_another = [&](const auto& row) { return row.what == what && row.thread != self; };
    bool marked = false;
    for (;;) {
        uint32_t since;
        {
            const LockGuard lock(mutex_);
            drop_pin(self);
            if (!marked && !any(ends_, of_another)) {
                ends_.push_back({what, self});
                marked = true;
            }
            if (marked &&
                !any(pins_, [&](const Pin& pin) { return of_another(pin) || (pin.takes && pin.thread != self); }))
                return;
            since = changes_.now();
        }
        changes_.wait(since);
    }
}

void Visits::finish_end(const void* what) {
    const LockGuard lock(mutex_);
    const uintptr_t self = own_thread();
    remove(ends_, [&](const End& end) { return end.what == what && end.thread == self; });
    changes_.happened();
}

void Visits::forget_own() {
    const LockGuard lock(mutex_);
    const uintptr_t self = own_thread();
    drop_pin(self);
    if (remove(ends_, [&](const End& end) { return end.thread == self; }))
        changes_.happened();
}

void Visits::forget_all() {
    const LockGuard lock(mutex_);
    pins_.release();
    ends_.release();
}

}  // namespace cuslice
