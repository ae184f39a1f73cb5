// SPDX-License-Identifier: Apache-2.0
// Running a program in a child process, with exactly the environment that a test gives it.
#pragma once

#include <string>
#include <vector>

namespace cuslice::tests {

struct Outcome {
    /// The exit code, or 128 and the signal as a shell has it.
    int exit_code = 0;
    std::string out;
    std::string err;
    int pid = 0;
};

/// `environment` as NAME=VALUE; `folder` is the child's current folder, this process's if empty.
Outcome run(const std::vector<std::string>& words, const std::vector<std::string>& environment,
            const std::string& folder = "");

/// A folder of this test's own, removed with all that is in it at the end.
class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::string& path() const { return path_; }
    /// Makes the folders on the way; returns the whole path.
    std::string write(const std::string& name, const std::string& text, unsigned mode = 0644) const;

  private:
    std::string path_;
};

std::string read_text(const std::string& path);

}  // namespace cuslice::tests
