// SPDX-License-Identifier: Apache-2.0
// The launcher's installation in these tests: the real launcher, with the system's file at a place of the tests' own,
// beside a driver of two GPUs that stands for the library and for the fake GPU, so that the launcher is tested alone.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/plain_environment.h"

namespace cuslice::tests {

inline const std::string kTree = CUSLICE_TEST_TREE;
inline const std::string kLauncher = kTree + "/bin/cuslice";
inline const std::string kLibrary = kTree + "/lib/cuslice/libcuslice.so";
inline const std::string kFakeFolder = kTree + "/lib/cuslice/fake";
inline const std::string kSystemFile = CUSLICE_TEST_SYSTEM_FILE;

using Words = std::vector<std::string>;

inline Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// The command line that starts `program` with `options`.
inline Words launch(const Words& options, const Words& program) {
    return with(with(with({kLauncher, "run"}, options), {"--"}), program);
}

/// The system's file, as long as a test needs it.
class SystemFile {
  public:
    explicit SystemFile(const std::string& text) { std::ofstream(kSystemFile, std::ios::binary) << text; }
    ~SystemFile() { std::remove(kSystemFile.c_str()); }
    SystemFile(const SystemFile&) = delete;
    SystemFile& operator=(const SystemFile&) = delete;
};

}  // namespace cuslice::tests
