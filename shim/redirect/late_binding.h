// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/redirect/veneers.h"

// Bound by name from another namespace of the loader, before this library is relocated: audit.cpp.
extern "C" {

// A veneer of a late table goes on here at its first call, with itself in a register that calls leave free (r11, x17).
// Keeps the call's arguments, binds the whole table, and goes on to where the veneer leads then.
[[gnu::visibility("default")]] void cuslice_redirect_first_call();

// The part of it that is no machine code: loads the shared runtime, and returns the veneer's entry. Where it can't be
// loaded any more, one line says so, and the module's calls fail with cudaErrorSharedObjectInitFailed (303). Any
// number of threads at once: each finds the same, and none waits for another, which may wait for the loader's lock.
const void* cuslice_redirect_bind(cuslice::Veneer* called);
}
