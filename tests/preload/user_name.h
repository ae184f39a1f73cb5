// SPDX-License-Identifier: Apache-2.0
// The name of whoever runs the tests.
#pragma once

#include <pwd.h>
#include <unistd.h>

#include <string>

namespace cuslice::tests {

/// As cuslice ps has it: of a user whom this machine doesn't know, the number.
inline std::string name_of_this_user() {
    const passwd* const entry = ::getpwuid(::geteuid());
    return entry ? entry->pw_name : std::to_string(::geteuid());
}

}  // namespace cuslice::tests
