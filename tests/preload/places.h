// Where the build put what these tests run.
#pragma once

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

}  // namespace cuslice::tests
