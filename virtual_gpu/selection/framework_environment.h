// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/settings.h"
#include "config/text.h"
#include "policy/frameworks/variables.h"

// The variables of policy/frameworks/variables.h in a living process's environment, for programs that no launcher has
// started. As for CUDA_VISIBLE_DEVICES (visible_devices.h) as little as possible is written there: nothing where
// nothing changes, otherwise one putenv(3) for each variable, of a line that is never freed. That is as safe against
// other threads' getenv as any setenv of the program's own; a new line at the end may make the C library take another
// array of pointers.
//
// A program with more rights than its user keeps its environment as it is.
namespace cuslice {

// When the library is loaded, mostly before the program has begun: for frameworks that read their variables before the
// first CUDA call. (The stub brings the library in later, with the driver: as late as that, Python has its copy of the
// environment.) Reads the environment alone, so it knows only what variables say, and changes nothing where
// CUSLICE_ALLOCATOR and kFrameworkRecord are not set, or a launcher has decided already.
void set_growth_at_start();

// NAME=VALUE of variables that it is too late for, divided by spaces.
using MissedVariables = FixedText<160>;

// After the driver's cuInit: sets or removes what is read from then on, and names the rest in `missed`, unless a
// launcher has decided about it. For one thread at a time.
void set_framework_variables(const FrameworkValues& values, MissedVariables& missed);

}  // namespace cuslice
