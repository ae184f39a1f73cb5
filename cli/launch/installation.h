// SPDX-License-Identifier: Apache-2.0
// Where this installation's own files are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config_error.h"

namespace cuslice::cli {

struct Installation {
    /// The launcher itself.
    std::string executable;
    /// libcuslice.so
    std::string library;
    /// libcuslice-runtime.so, which stands before the CUDA runtime where GPUs are split.
    std::string runtime_shim;
    /// libcuslice-redirect.so, which leads a program's static runtime to a shared one, and libcuslice-audit.so, which
    /// does so for libraries.
    std::string redirect, audit;
    /// The folder of the fake GPU's libraries.
    std::string fake_folder;
    /// The program of `cuslice demo`.
    std::string demo;
    /// The Python program that draws recordings.
    std::string plot;

    std::string fake_driver() const { return fake_folder + "/libcuda.so.1"; }
    /// The folder of the fake GPU's nvidia-smi.
    std::string fake_programs() const { return fake_folder + "/" + "bin"; }
    /// The fake GPU's CUDA runtimes, cuBLAS, cuBLASLt and cuDNN that are there, in the loader's order.
    std::vector<std::string> fake_preloads() const;
};

/// Found from the launcher's own place, so that a build folder and a tree that was moved work alike. A path that
/// LD_PRELOAD could not carry is refused, as it would be ignored without a word; so is an installation without the
/// library.
bool find_installation(Installation& installation, ConfigError& error);

/// The same from a given place of the launcher; looks at no file.
Installation installation_of(const std::string& executable);

/// True for a path of fake_preloads(), of whichever installation.
bool is_fake_preload(std::string_view path);

/// False if the loader would take `path` apart in a list of paths: at spaces and colons, and at `$`, which begins its
/// own variables; in LD_LIBRARY_PATH at semicolons too.
bool fits_in_loader_list(const std::string& path);

}  // namespace cuslice::cli
