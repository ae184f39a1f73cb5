// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/page_vector.h"

namespace cuslice {

// True for a program that runs with more rights than whoever started it (AT_SECURE: set-user-ID, set-group-ID, file
// capabilities). Whoever starts it chooses its variables, its HOME and its files: none of them may steer us in it.
bool has_more_rights();

// When the library is loaded: keeps what `cuslice run` handed on, if this process was started by it. Programs that
// clean their environment before their first CUDA call would otherwise lose their limit without knowing it.
void keep_handed_on();

// True if something was kept that the program has removed since.
bool was_cleared();

// The variables that cuslice takes its settings from: the environment as it is now; where the program has removed what
// was handed on, with what was kept in the place of what is missing; nothing at all in a program with more rights.
class HostEnvironment {
  public:
    HostEnvironment();
    ~HostEnvironment() { merged_.release(); }
    HostEnvironment(const HostEnvironment&) = delete;
    HostEnvironment& operator=(const HostEnvironment&) = delete;

    // NAME=VALUE, and a null at the end.
    const char* const* lines() const { return lines_; }

  private:
    PageVector<const char*> merged_;
    const char* const* lines_;
};

}  // namespace cuslice
