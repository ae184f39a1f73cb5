// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports of a watched program to its watcher (watch.cpp): lines `key value` over the socket whose number is in
// CHECK_WATCHER. Without a watcher the lines go to stdout and nobody is waited for, so that each program also runs by
// itself.
#include <cstdint>
#include <string>

namespace cuslice::check {

void tell(const std::string& key, const std::string& value);
void tell(const std::string& key, uint64_t bytes);

/// Says that everything is allocated now, and waits until the watcher has read what it wanted, and all that it watches
/// have come this far.
void held();

/// Waits until all that the watcher watches have come this far.
void ready();

}  // namespace cuslice::check
