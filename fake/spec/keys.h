// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every key that a profile or a user's [[gpu]] table may hold, once: the reader, the error messages and the
// documentation come from this table.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

enum class KeyKind { Size, Count, Duration, Flag, Text, Capability, Brand, Identity, Pci, Profile, Copies, Instances };

struct Key {
    const char* name;
    KeyKind kind;
    std::variant<std::monostate, uint64_t GpuSpec::*, bool GpuSpec::*, std::string GpuSpec::*> member;
    uint64_t least, most;  // bounds of a Size, Count or Duration
    bool of_gpu_only;      // not allowed in a profile: it belongs to one GPU
    const char* meaning;
};

/// All keys, in the order in which the documentation shows them.
const std::vector<Key>& keys();

/// The key of that name, or null.
const Key* find_key(const std::string& name);

/// "brand, clock, …": for the message about an unknown key.
std::string known_keys(bool in_profile);

/// Reads a size with its unit into bytes. KiB MiB GiB TiB and K M G T are powers of 1024, KB MB GB TB of 1000, "0"
/// needs no unit. On failure false, and what would be right in `why`.
bool parse_size(const std::string& text, uint64_t& bytes, std::string& why);

}  // namespace cuslice::fake
