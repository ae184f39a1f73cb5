// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/text.h"

namespace cuslice {

// libcudart.so.12 or another one: what NVIDIA calls a shared runtime of this major version.
FixedText<32> soname_of_runtime(int major);

// Why there is no such runtime: what is needed, and how to get it.
void explain_missing_runtime(int major, Reason& why);

// Called with each file until it returns true.
using VisitRuntime = bool (*)(const char* path, void* argument);

// Files of a shared runtime where the loader doesn't look: a toolkit's, in CUDA_HOME, CUDA_PATH or /usr/local; a Python
// package's, in VIRTUAL_ENV or CONDA_PREFIX, or beside the packages of which `module` is one (null: none).
bool any_runtime_elsewhere(int major, const char* module, VisitRuntime visit, void* argument);

template <typename Visit>
bool any_runtime_elsewhere(int major, const char* module, Visit visit) {
    const auto call = [](const char* path, void* own) { return (*static_cast<Visit*>(own))(path); };
    return any_runtime_elsewhere(major, module, call, &visit);
}

}  // namespace cuslice
