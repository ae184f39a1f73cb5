// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// Starts a thread that takes no signal and ends with the process. False: there is none, as where the program has no
// libpthread.
bool start_background_thread(void* (*body)(void*), void* argument);

// Calls `last` with `argument` when this thread ends; `last` is the same each time. Nothing happens where the C library
// can't do that: in a program without threads.
void at_thread_end(void (*last)(void*), void* argument);

}  // namespace cuslice
