// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// From now on, a thread that waits for one of our locks for longer than five seconds says so, once for each wait: which
// lock, where, and who has it. For log = debug; it costs nothing as long as nobody waits. So a hang explains itself.
void tell_long_waits();

}  // namespace cuslice
