// SPDX-License-Identifier: Apache-2.0
// The names of errors.

#include "fake/driver/api_prologue.h"

using namespace cuslice::fake;

namespace {

struct ErrorText {
    CUresult error;
    const char* name;
    const char* meaning;
};

constexpr ErrorText kErrorTexts[] = {
#define ERROR(code, meaning) {code, #code, meaning},
#include "fake/driver/errors.def"
#undef ERROR
};

CUresult error_text(CUresult error, const char* ErrorText::*part, const char** out) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = nullptr;
    for (const ErrorText& text : kErrorTexts) {
        if (text.error == error) {
            *out = text.*part;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) { return error_text(error, &ErrorText::name, text); }

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
    return error_text(error, &ErrorText::meaning, text);
}
