// SPDX-License-Identifier: Apache-2.0
// The machine's own files of users and groups. They are read by hand: the C library's look-ups bring modules, sockets
// and locks into a program, so names that only a directory server has are not found.
#pragma once

#include <string_view>

namespace cuslice::rules {

/// The number that `name` has in a file such as /etc/passwd or /etc/group, whose lines begin `name:password:number:`.
/// False if it isn't there. Pure.
bool find_number(std::string_view file, std::string_view name, unsigned& number);

/// A number as it may stand in the place of a name: digits alone, below 2^32 - 1. Pure.
bool parse_number(std::string_view text, unsigned& number);

}  // namespace cuslice::rules
