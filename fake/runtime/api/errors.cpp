// SPDX-License-Identifier: Apache-2.0
// Errors: names, texts, and the last one of a thread.

#include "fake/runtime/state.h"

namespace {

struct Text {
    cudaError_t code;
    const char* name;
    const char* text;
};

constexpr Text kTexts[] = {
#define ERROR(name, text) {name, #name, text},
#include "fake/runtime/errors.def"
#undef ERROR
};

const Text* find(cudaError_t code) {
    for (const Text& text : kTexts) {
        if (text.code == code)
            return &text;
    }
    return nullptr;
}

constexpr const char* kUnrecognized = "unrecognized error code";

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
    const Text* text = find(error);
    return text == nullptr ? kUnrecognized : text->name;
}

const char* cudaGetErrorString(cudaError_t error) {
    const Text* text = find(error);
    return text == nullptr ? kUnrecognized : text->text;
}

cudaError_t cudaGetLastError() { return cuslice::fake::last_error(true); }

cudaError_t cudaPeekAtLastError() { return cuslice::fake::last_error(false); }
