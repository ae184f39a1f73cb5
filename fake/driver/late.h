// SPDX-License-Identifier: Apache-2.0
#pragma once
// Late streams: CUSLICE_FAKE_STREAMS=late, or late:SEED. Asynchronous work is done as late as CUDA allows, so that a
// program which does not wait where it has to is found out. What is done meanwhile, and in which order, is the seed's.

#include <string>

namespace cuslice::fake {

/// Reads the variable's text, before there is a stream. On failure false and a message that says what is wrong.
bool make_streams(const std::string& text, std::string& error);

/// A call of the function is about to be made. One that takes away what queued work may still use waits for all of it
/// first: real drivers do that, or call it the program's mistake. Unmapping waits for nothing: nobody documents that it
/// does, and work that finds its addresses unmapped fails (resolve.h).
void settle_before(const char* name);

}  // namespace cuslice::fake
