// SPDX-License-Identifier: Apache-2.0
// Looks whether a call that is refused leaves everything as it was: what is current, the thread's stack of contexts,
// the process's contexts, the bytes that are free, and where the call would have put something.
#pragma once

#include <string>

#include "tests/preload/guest/routes.h"

namespace guest {

/// Puts a function of its own before each of the driver's, which looks before and after. It looks at nothing before
/// cuInit, in other threads than the first one, in a child of the program's, and while another thread is at work too.
void check_refusals(Driver& driver);

/// Changes that refused calls have made since this was asked last; empty if there are none.
std::string take_changes();

/// Leaves out what a test case knows to change: "stack", "free" or "out".
void let_change(const std::string& what);

/// While a stream is captured the free bytes are not asked for. For captures that begin where no look is.
void capture_begins();

/// While another thread is at work, what a call changes is not to be told from what that thread does.
class NotAlone {
  public:
    NotAlone();
    ~NotAlone();
    NotAlone(const NotAlone&) = delete;
    NotAlone& operator=(const NotAlone&) = delete;
};

}  // namespace guest
