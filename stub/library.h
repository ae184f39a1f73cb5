// SPDX-License-Identifier: Apache-2.0
// libcuslice.so, and why it can't come into this process.
#pragma once

#include <stdbool.h>

#include "stub/objects.h"

/// Function that the library exports for the stub: takes the dlopen behind the stub, and returns its own. A library
/// without it is older than the stub. The number in the name changes when an old library can't serve a new stub.
#define CUSLICE_ENTRANCE cuslice_enter_1
#define CUSLICE_ENTRANCE_NAME "cuslice_enter_1"

/// Pointer to a function whose address the loader asks linked.c for. dlopen.c looks at it, so that no linker takes
/// linked.c for unused.
extern __attribute__((visibility("hidden"))) void (*const volatile cuslice_stub_keeps)(void);

/// Null for a file that is there whole and for this machine; else what is wrong with it. The loader maps a file that
/// was cut short, and the program ends by a SIGBUS.
const char* library_fault(const char* path);

/// One line on stderr, the first time in a process: what is wrong with the library, and `so` what becomes of the
/// program. `sure`: descriptor 2 is still what the program was started with.
void say_refused(const char* library, const char* why, const char* so, bool sure);
#define SO_NO_CUDA "this program gets no CUDA"
