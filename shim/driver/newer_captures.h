// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// Functions that begin a capture and that this version does not know: a driver newer than the headers has some, with
// arguments of its own, but always the stream first. Where memory is cached, programs that look one up get a stub that
// notes the stream before it jumps on, so that nothing waits for the GPU during a capture that nobody saw begin.

// True if an unknown function with this name (as cuGetProcAddress takes it) begins a capture.
bool begins_capture(const char* name);
// The stub for the driver's function; null if there are more of these than there are stubs.
void* newer_capture(void* real);

}  // namespace cuslice
