#pragma once
// How much of the host's memory the contents of the fake GPUs may take in one process: CUSLICE_FAKE_HOST. Without a
// bound a program that fills the memory of an H200 ends the machine's other programs.

#include <cstddef>
#include <functional>
#include <string>

namespace cuslice::fake {

/// Reads the variable, null if it isn't set: then it is 8 GiB, and at most half of what the machine has. On failure
/// false and a message that says what is wrong.
bool set_host_bound(const char* text, std::string& error);

/// What this process can have of the host's memory at most: the machine's, or what its control group may take. Bytes.
std::size_t machine_memory();

/// The contents of a file count from now on, until it is forgotten, which has to be before it is closed.
void count_file(int file);
void forget_file(int file);

/// Whether what is about to be written fits. At most it takes `most` bytes; `exactly` is asked if that alone doesn't
/// settle it. Says once that something doesn't fit.
bool host_has_room(std::size_t most, const std::function<std::size_t()>& exactly);

}  // namespace cuslice::fake
