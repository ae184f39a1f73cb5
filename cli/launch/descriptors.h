// SPDX-License-Identifier: Apache-2.0
// The launcher's own descriptors, which must never be taken for the program's.
#pragma once

namespace cuslice::cli {

/// Before anything else is opened: /dev/null in place of a standard descriptor that is closed, and nothing of ours
/// below
/// 10. A file that the launcher opened as descriptor 2 would be written to as the program's stderr, the ledger's above
/// all, which lives on over exec; and from 3 on shells and service managers hand programs files by number. What fills
/// the places below 10 is closed by exec.
void settle_descriptors();

}  // namespace cuslice::cli
