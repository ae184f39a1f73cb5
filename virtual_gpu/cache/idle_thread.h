#pragma once

namespace cuslice {

// Starts the thread that gives back what a GPU's caches have not used for its `idle-release`, also while the program
// sleeps. It takes no signal, and ends with the process.
void start_idle_thread();

// Calls `last` when this thread ends. Nothing where the C library can't do that: a program without threads.
void at_thread_end(void (*last)());

}  // namespace cuslice
