// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports callers that ask for the tables by which a driver proves itself. Most are NVIDIA's runtime, which doesn't
// start without them.

namespace cuslice::fake {

/// Says once for each module what its question means, by what lies at the caller's address: a library that needs a GPU,
/// or the program itself, which can be linked otherwise. Nothing for NVIDIA's compilers and driver libraries, which ask
/// as well and go on without.
void log_who_asked(const void* caller);

}  // namespace cuslice::fake
