// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/ptx.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuslice::fake {
namespace {

struct Symbol {
    const char* name;
    size_t size;
    bool is_kernel;
};

int by_name(const void* left, const void* right) {
    return std::strcmp(static_cast<const Symbol*>(left)->name, static_cast<const Symbol*>(right)->name);
}

// The version of PTX that CUDA 12.9 came with: it knows the targets of every GPU there is.
constexpr char kHeaderFormat[] = ".version 8.8\n.target sm_%d\n.address_size 64\n";
constexpr char kKernelFormat[] = ".visible .entry %s\n{\n\ttrap;\n}\n";
constexpr char kVariableFormat[] = ".visible .global .align 8 .b8 %s[%zu];\n";
constexpr size_t kLongestNumber = 20;

}  // namespace

char* synthesize_ptx(const Binary& binary, int capability) {
    size_t count = 0;
    size_t bytes = sizeof kHeaderFormat + kLongestNumber;
    for (const RegisteredKernel* kernel = binary.kernels; kernel != nullptr; kernel = kernel->next, ++count) {
        bytes += sizeof kKernelFormat + std::strlen(kernel->name);
    }
    for (const RegisteredVariable* variable = binary.variables; variable != nullptr;
         variable = variable->next, ++count) {
        bytes += sizeof kVariableFormat + std::strlen(variable->name) + kLongestNumber;
    }
    auto* symbols = static_cast<Symbol*>(std::malloc((count + 1) * sizeof(Symbol)));
    auto* text = static_cast<char*>(std::malloc(bytes));
    if (symbols == nullptr || text == nullptr) {
        std::free(symbols);
        std::free(text);
        return nullptr;
    }
    size_t filled = 0;
    for (const RegisteredKernel* kernel = binary.kernels; kernel != nullptr; kernel = kernel->next) {
        symbols[filled++] = {kernel->name, 0, true};
    }
    for (const RegisteredVariable* variable = binary.variables; variable != nullptr; variable = variable->next) {
        if (variable->shadow == nullptr) {
            symbols[filled++] = {variable->name, variable->size, false};
        }
    }
    // With relocatable device code every translation unit registers what it uses: a name may come more than once.
    std::qsort(symbols, filled, sizeof(Symbol), by_name);
    auto end = static_cast<size_t>(std::snprintf(text, bytes, kHeaderFormat, capability));
    for (size_t i = 0; i < filled; ++i) {
        if (i > 0 && by_name(&symbols[i - 1], &symbols[i]) == 0)
            continue;
        const int length = symbols[i].is_kernel ? std::snprintf(text + end, bytes - end, kKernelFormat, symbols[i].name)
                                                : std::snprintf(text + end, bytes - end, kVariableFormat,
                                                                symbols[i].name, symbols[i].size);
        end += static_cast<size_t>(length);
    }
    std::free(symbols);
    return text;
}

}  // namespace cuslice::fake
