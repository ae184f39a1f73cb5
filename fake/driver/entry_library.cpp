// SPDX-License-Identifier: Apache-2.0
// Libraries: images that belong to no context until they are used in one.

#include "fake/driver/api_prologue.h"
#include "fake/driver/image_file.h"
#include "fake/driver/jit_log.h"
#include "fake/driver/module.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult load(CUlibrary* out, const void* data, const JitLog& log, uint64_t size = kUnknownSize) {
    if (out == nullptr || data == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    auto image = std::make_shared<Image>();
    const CUresult read = read_image(data, 0, *image, size);
    log.write(image->fault);
    if (read != CUDA_SUCCESS)
        return read;
    const DriverLock hold;
    *out = libraries.create(Library{.image = std::move(image)}).first;
    return CUDA_SUCCESS;
}

/// The kernel of that name, with the lock held.
CUresult find_kernel(CUlibrary handle, const std::string& name, CUkernel& out) {
    CUSLICE_FIND_IN(library, libraries, handle);
    const auto known = library->kernels.find(name);
    if (known != library->kernels.end()) {
        out = known->second;
        return CUDA_SUCCESS;
    }
    auto info = kernel_named(library->image, name);
    if (info == nullptr)
        return CUDA_ERROR_NOT_FOUND;
    library->kernels[name] = out = kernels.create(Kernel{handle, std::move(info)}).first;
    return CUDA_SUCCESS;
}

CUresult find_in_library(CUlibrary handle, const char* name, bool managed, Variable& out) {
    if (name == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    CUmodule module = nullptr;
    CUSLICE_TRY(library_module(handle, *context, module));
    Variable found;
    CUSLICE_TRY(find_variable(*modules.find(module), name, found));
    if (found.managed != managed)
        return CUDA_ERROR_NOT_FOUND;
    out = found;
    return CUDA_SUCCESS;
}

CUresult get_variable(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name, bool managed) {
    Variable variable;
    if (address == nullptr && bytes == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(find_in_library(library, name, managed, variable));
    if (address != nullptr)
        *address = variable.at;
    if (bytes != nullptr)
        *bytes = variable.size;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuLibraryLoadData, out, code, jit, jit_values, jit_count, options, values, count) {
    JitLog log;
    if (count > 0 && options == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(log.read(jit_count, jit, jit_values));
    return load(out, code, log);
}

CUSLICE_ENTRY(cuLibraryLoadFromFile, out, path, jit, jit_values, jit_count, options, values, count) {
    JitLog log;
    std::vector<unsigned char> contents;
    if (out == nullptr || path == nullptr || (count > 0 && options == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(log.read(jit_count, jit, jit_values));
    CUSLICE_TRY(read_image_file(path, contents));
    contents.reserve(1);  // an empty file has an address too
    return load(out, contents.data(), log, contents.size());
}

CUSLICE_ENTRY(cuLibraryUnload, handle) {
    const DriverLock hold;
    CUSLICE_FIND_IN(library, libraries, handle);
    for (const auto& [name, kernel] : library->kernels)
        kernels.destroy(kernel);
    for (const auto& [context, module] : library->modules)
        unload_module(module);
    libraries.destroy(handle);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuLibraryGetKernel, out, library, name) {
    if (out == nullptr || name == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    return find_kernel(library, name, *out);
}

CUSLICE_ENTRY(cuLibraryGetKernelCount, count, handle) {
    if (count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_FIND_IN(library, libraries, handle);
    if (!library->image->opaque.empty())
        CUSLICE_UNSUPPORTED("cuLibraryGetKernelCount of an image that can't be read");
    *count = static_cast<unsigned>(library->image->kernels.size());
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuLibraryEnumerateKernels, out, room, handle) {
    if (out == nullptr || room == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_FIND_IN(library, libraries, handle);
    if (!library->image->opaque.empty())
        CUSLICE_UNSUPPORTED("cuLibraryEnumerateKernels of an image that can't be read");
    for (const KernelInfo& info : library->image->kernels) {
        if (room-- == 0)
            break;
        CUSLICE_TRY(find_kernel(handle, info.name, *out++));
    }
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuLibraryGetModule, out, handle) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    return library_module(handle, *context, *out);
}

CUSLICE_ENTRY(cuLibraryGetGlobal, address, bytes, library, name) {
    return get_variable(address, bytes, library, name, false);
}

CUSLICE_ENTRY(cuLibraryGetManaged, address, bytes, library, name) {
    return get_variable(address, bytes, library, name, true);
}

CUSLICE_ENTRY(cuKernelGetFunction, out, kernel) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    return kernel_function(kernel, *context, *out);
}

CUSLICE_ENTRY(cuKernelGetLibrary, out, handle) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(kernel, kernels, handle);
    *out = kernel->library;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuKernelGetName, name, handle) {
    if (name == nullptr || handle == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(kernel, kernels, handle);
    *name = kernel->info->name.c_str();
    return CUDA_SUCCESS;
}
