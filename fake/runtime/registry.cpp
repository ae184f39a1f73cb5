// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/registry.h"

#include "fake/runtime/pointer_map.h"

namespace cuslice::fake {
namespace {

constinit PointerMap<RegisteredKernel> kernels;
constinit PointerMap<RegisteredVariable> variables;
constinit Binary* binaries = nullptr;

template <class Node>
void free_list(Node* node) {
    while (node != nullptr) {
        Node* const next = node->next;
        std::free(node);
        node = next;
    }
}

}  // namespace

Binary* add_binary(const void* device_code) {
    auto* binary = static_cast<Binary*>(std::calloc(1, sizeof(Binary)));
    if (binary != nullptr) {
        binary->device_code = device_code;
        binary->next = binaries;
        if (binaries != nullptr)
            binaries->previous = binary;
        binaries = binary;
    }
    return binary;
}

void remove_binary(Binary* binary) {
    for (RegisteredKernel* kernel = binary->kernels; kernel != nullptr; kernel = kernel->next) {
        kernels.erase(kernel->host, kernel);
    }
    for (RegisteredVariable* variable = binary->variables; variable != nullptr; variable = variable->next) {
        variables.erase(variable->host, variable);
    }
    (binary->previous != nullptr ? binary->previous->next : binaries) = binary->next;
    if (binary->next != nullptr)
        binary->next->previous = binary->previous;
    free_list(binary->kernels);
    free_list(binary->variables);
    free_list(binary->loaded);
    std::free(binary);
}

bool add_kernel(Binary* binary, const void* host, const char* name) {
    auto* kernel = static_cast<RegisteredKernel*>(std::malloc(sizeof(RegisteredKernel)));
    if (kernel == nullptr || !kernels.insert(host, kernel)) {
        std::free(kernel);
        return false;
    }
    *kernel = {binary->kernels, binary, host, name};
    binary->kernels = kernel;
    return true;
}

bool add_variable(Binary* binary, const void* host, const char* name, size_t size, void** shadow) {
    auto* variable = static_cast<RegisteredVariable*>(std::malloc(sizeof(RegisteredVariable)));
    if (variable == nullptr || !variables.insert(host, variable)) {
        std::free(variable);
        return false;
    }
    *variable = {binary->variables, binary, host, name, size, shadow, 0, nullptr};
    binary->variables = variable;
    return true;
}

RegisteredKernel* find_kernel(const void* host) { return kernels.find(host); }

RegisteredVariable* find_variable(const void* host) {
    if (RegisteredVariable* found = variables.find(host); found != nullptr)
        return found;
    // A managed variable is also known by the address that its shadow holds. Programs have few.
    for (Binary* binary = binaries; binary != nullptr && host != nullptr; binary = binary->next) {
        for (RegisteredVariable* variable = binary->variables; variable != nullptr; variable = variable->next) {
            if (variable->managed != 0 && reinterpret_cast<const void*>(variable->managed) == host)
                return variable;
        }
    }
    return nullptr;
}

void forget_modules(CUcontext context) {
    for (Binary* binary = binaries; binary != nullptr; binary = binary->next) {
        for (LoadedModule** link = &binary->loaded; *link != nullptr;) {
            if ((*link)->context == context) {
                LoadedModule* const gone = *link;
                *link = gone->next;
                std::free(gone);
            } else {
                link = &(*link)->next;
            }
        }
        // Managed memory belongs to the context in which it was made; the next use makes it anew.
        for (RegisteredVariable* variable = binary->variables; variable != nullptr; variable = variable->next) {
            if (variable->owner == context) {
                variable->managed = 0;
                variable->owner = nullptr;
            }
        }
    }
}

}  // namespace cuslice::fake
