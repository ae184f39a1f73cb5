// SPDX-License-Identifier: Apache-2.0
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

/// Most bytes of the host's memory that this process can have: the machine's memory, or its control group's limit if
/// that is lower.
size_t machine_memory();

/// The contents of a file count from now on, until it is forgotten, which has to be before it is closed.
void count_file(int file);
void forget_file(int file);

/// True if a write fits that takes at most `most` bytes. `exactly` computes the exact number, and is called only if
/// `most` doesn't settle it. Says once that something doesn't fit.
bool host_has_room(size_t most, const std::function<size_t()>& exactly);

}  // namespace cuslice::fake
