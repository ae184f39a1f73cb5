// SPDX-License-Identifier: Apache-2.0
#pragma once
// PTX as text: its tokens, and what is wrong with it, said with the line.

#include <string>
#include <string_view>
#include <vector>

namespace cuslice::fake {

/// Names, numbers, strings and single characters; no comments and no spaces. All of them point into the text.
std::vector<std::string_view> ptx_tokens(std::string_view text);

/// "line 3: 'token': what", as it goes into an error log.
std::string ptx_fault(std::string_view text, std::string_view token, std::string_view what);

/// Finds a fault that every PTX front end refuses before it compiles anything: unknown directives and instructions,
/// statements and blocks without an end, a text that doesn't begin with .version and .target. Returns "" if there is
/// none. Operands and types aren't looked at.
std::string check_ptx(std::string_view text);

/// A checked text without .version, .target and .address_size: it can go behind another one.
std::string_view ptx_without_header(std::string_view text);

}  // namespace cuslice::fake
