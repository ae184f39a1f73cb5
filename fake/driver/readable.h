// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory whose end nobody tells: images that a program passes by their beginning alone.

#include <cstddef>
#include <cstdint>

namespace cuslice::fake {

/// True if all of these bytes of this process can be read; none is touched. Where the kernel doesn't say, as in some
/// sandboxes, true. Any thread.
bool is_readable(const void* memory, uint64_t size);

/// Like strlen, for a text that may have no end: the bytes that can be read then, and `ended` is false.
size_t readable_length(const char* text, bool& ended);

}  // namespace cuslice::fake
