// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them: "4GiB", "1.5GiB", "512MB".
#pragma once

#include <cstdint>
#include <string_view>

#include "config/text.h"

namespace cuslice {

/// The unit to propose for a small number without one: in 4 a limit means 4GiB, in 64 a headroom 64MiB.
enum class BareNumber { gib, mib };

/// Reads a size with its unit: KiB MiB GiB TiB and K M G T are powers of 1024, KB MB GB TB powers of 1000. A fraction
/// of a byte is dropped. Returns false and says why in `why` for anything else; a number without a unit is refused,
/// since nobody can tell whether 1024 means bytes or MiB. Pure; safe from any thread.
bool parse_size(std::string_view text, uint64_t& bytes, Reason& why, BareNumber bare = BareNumber::gib);

using SizeText = FixedText<32>;

/// Bytes for people, one decimal, rounded: "612 bytes", "12.0 KiB", "1024.0 MiB", "39.6 GiB". MiB up to 10 GiB, because
/// that is the unit in which nvidia-smi speaks. Pure; safe from any thread.
SizeText format_size(uint64_t bytes);

}  // namespace cuslice
