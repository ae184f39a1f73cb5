// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/budget/budget.h"

namespace cuslice {

// Bytes that were taken from a budget and are nobody's yet: rolled back when this ends, unless committed. Of one
// thread.
class Reservation {
  public:
    Reservation(Budget& budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}
    ~Reservation() {
        if (!settled_)
            budget_.roll_back(bytes_);
    }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    void commit() {
        settled_ = true;
        budget_.commit();
    }
    // Somebody else has settled the account.
    void disown() { settled_ = true; }

  private:
    Budget& budget_;
    uint64_t bytes_;
    bool settled_ = false;
};

}  // namespace cuslice
