// SPDX-License-Identifier: Apache-2.0
// Dumps after an exception on the GPU. None happens here, so that what is said is kept and has no effect.

#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"

using namespace cuslice::fake;

namespace {

using Values = std::map<CUcoredumpSettings, std::string>;  // as bytes

constexpr size_t kText = 1024;  // documented: up to 1023 characters

constinit std::mutex values_lock;

Values& values_for_all() {
    static auto* values = new Values;
    return *values;
}

/// By context; a handle isn't used again.
Values& values_for(CUcontext context) {
    static auto* values = new std::map<CUcontext, Values>;
    return (*values)[context];
}

/// Bytes of a setting's value; 0 if there is no such setting.
size_t size_of(CUcoredumpSettings which) {
    switch (which) {
        case CU_COREDUMP_ENABLE_ON_EXCEPTION:
        case CU_COREDUMP_TRIGGER_HOST:
        case CU_COREDUMP_LIGHTWEIGHT:
        case CU_COREDUMP_ENABLE_USER_TRIGGER:
            return sizeof(bool);
        case CU_COREDUMP_GENERATION_FLAGS:
            return sizeof(int);
        case CU_COREDUMP_FILE:
        case CU_COREDUMP_PIPE:
            return kText;
        default:
            return 0;
    }
}

std::string default_name(const char* beginning) {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    return std::string(beginning) + "." + host + "." + std::to_string(getpid());
}

std::string default_of(CUcoredumpSettings which) {
    if (which == CU_COREDUMP_FILE)
        return default_name("core.cuda");
    if (which == CU_COREDUMP_PIPE)
        return default_name("corepipe.cuda");
    return std::string(size_of(which), which == CU_COREDUMP_TRIGGER_HOST ? '\1' : '\0');
}

CUresult get(CUcontext context, CUcoredumpSettings which, void* value, size_t* size) {
    const size_t bytes = size_of(which);
    if (size == nullptr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (value == nullptr) {
        *size = bytes;
        return CUDA_SUCCESS;
    }
    const std::lock_guard hold(values_lock);
    Values found = context != nullptr ? values_for(context) : Values{};
    found.insert(values_for_all().begin(), values_for_all().end());
    std::string given = found.contains(which) ? found.at(which) : default_of(which);
    if (bytes == kText)
        given.push_back('\0');
    if (*size < given.size())
        return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(value, given.data(), given.size());
    if (bytes != kText)
        *size = bytes;
    return CUDA_SUCCESS;
}

CUresult set(CUcontext context, CUcoredumpSettings which, const void* value, size_t* size) {
    const size_t bytes = size_of(which);
    if (size == nullptr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (value == nullptr) {
        *size = bytes;
        return CUDA_SUCCESS;
    }
    const auto* const text = static_cast<const char*>(value);
    const size_t length = bytes == kText ? strnlen(text, *size) : bytes;
    if (bytes == kText ? length >= kText : *size != bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (which == CU_COREDUMP_ENABLE_USER_TRIGGER && *text != 0)
        CUSLICE_UNSUPPORTED("dumps that a user triggers");  // there would be a pipe to write to
    const std::lock_guard hold(values_lock);
    Values& values = context != nullptr ? values_for(context) : values_for_all();
    values[which] = std::string(text, length);
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuCoredumpGetAttributeGlobal, which, value, size) { return get(nullptr, which, value, size); }

CUSLICE_ENTRY(cuCoredumpSetAttributeGlobal, which, value, size) { return set(nullptr, which, value, size); }

CUSLICE_ENTRY(cuCoredumpGetAttribute, which, value, size) {
    CUSLICE_FIND_CURRENT(context);
    return get(context->handle, which, value, size);
}

CUSLICE_ENTRY(cuCoredumpSetAttribute, which, value, size) {
    CUSLICE_FIND_CURRENT(context);
    return set(context->handle, which, value, size);
}
