// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fake GPU's libraries, opened as programs open them.

#include <ostream>
#include <string>

#include "fake/cublas/api.h"
#include "tests/fake/driver/gpu.h"

namespace cuslice::fake {
/// For a failed expectation.
inline std::ostream& operator<<(std::ostream& stream, CublasStatus status) {
    return stream << static_cast<int>(status);
}
}  // namespace cuslice::fake

namespace fake_test {

using Status = cuslice::fake::CublasStatus;

/// Opens a library of the fake GPU's folder; null, with a failure reported, if it isn't there.
void* open_library(const Report& report, const std::string& file);

/// Its address; ends the child where there is none.
void* function_of(void* library, const char* name);

/// A function of it, with the type of a call: `call<int>(library, "name", 1, pointer)`.
template <class Result = Status, class... Arguments>
Result call(void* library, const char* name, Arguments... arguments) {
    return reinterpret_cast<Result (*)(Arguments...)>(function_of(library, name))(arguments...);
}

/// How often `part` is in `text`.
int count_of(const std::string& text, const std::string& part);

}  // namespace fake_test
