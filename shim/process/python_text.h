// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/text.h"

namespace cuslice {

// Where CPython keeps the characters of a text: offsets in bytes.
struct PythonTextLayout {
    uint16_t ascii, wide;
};

// In characters.
constexpr size_t kMostOfPythonText = 200;
// In UTF-8; bytes of a file's name that aren't are "?".
using PythonText = FixedText<4 * kMostOfPythonText + 1>;

// A text object of CPython's, of a long one the end. Empty where the object isn't of `type`, or can't be read.
PythonText read_python_text(uintptr_t object, uintptr_t type, const PythonTextLayout& layout);

// A file's path without the folder in which packages lie ("torch/cuda/__init__.py"), or Python's own modules
// ("python3.11/threading.py").
std::string_view without_packages_folder(std::string_view path);

}  // namespace cuslice
