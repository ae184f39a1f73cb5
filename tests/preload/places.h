// SPDX-License-Identifier: Apache-2.0
// Where the build put what these tests run.
#pragma once

#include <cstdlib>
#include <string>

namespace cuslice::tests {

inline const std::string kPreloaded = CUSLICE_TEST_LIBRARY;
inline const std::string kFakeFolder = CUSLICE_TEST_FAKE_FOLDER;
inline const std::string kFakeDriver = kFakeFolder + "/libcuda.so.1";
inline const std::string kGuests = CUSLICE_TEST_GUESTS;
inline const std::string kSources = CUSLICE_TEST_SOURCES;
inline const std::string kPython = CUSLICE_TEST_PYTHON;  // empty: there is none
/// Sanitizers in use, as -fsanitize takes them, and the runtime that has to be preloaded before us then.
inline const std::string kSanitizer = CUSLICE_TEST_SANITIZER;
inline const std::string kSanitizerRuntime = CUSLICE_TEST_SANITIZER_RUNTIME;

/// A file of NVIDIA's own, which lab/genuine/fetch.py brings where it can be had.
inline std::string genuine(const std::string& item, const std::string& file) {
    const char* const cache = std::getenv("CUSLICE_GENUINE_CACHE");
    return (cache != nullptr && *cache != '\0' ? cache : CUSLICE_TEST_GENUINE) + ("/" + item + "/" + file);
}

}  // namespace cuslice::tests
