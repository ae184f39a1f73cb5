// SPDX-License-Identifier: Apache-2.0
// The least environment that programs of these tests have.
#pragma once

#include <string>
#include <vector>

namespace cuslice::tests {

/// PATH and a HOME in `home`, nothing else.
inline std::vector<std::string> plain_environment(const std::string& home) {
    std::vector<std::string> environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home};
#ifdef __SANITIZE_ADDRESS__
    // A launcher inside another has the library before the sanitizer's own.
    environment.emplace_back("ASAN_OPTIONS=verify_asan_link_order=0");
#endif
    return environment;
}

}  // namespace cuslice::tests
