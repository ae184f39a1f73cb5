// SPDX-License-Identifier: Apache-2.0
// Modules: load, look into, unload.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fake/driver/api_prologue.h"
#include "fake/driver/image_file.h"
#include "fake/driver/jit_log.h"
#include "fake/driver/module.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult load(CUmodule* out, const void* data, const JitLog& log = {}, uint64_t size = kUnknownSize) {
    if (out == nullptr || data == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    auto image = std::make_shared<Image>();
    const CUresult read = read_image(data, context->gpu->spec.capability(), *image, size);
    log.write(image->fault);
    if (read != CUDA_SUCCESS)
        return read;
    const DriverLock hold;
    return load_module(*context, std::move(image), *out);
}

CUresult get_global(CUmodule handle, const char* name, Variable& out) {
    if (name == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    CUSLICE_FIND_IN(module, modules, handle);
    return find_variable(*module, name, out);
}

}  // namespace

namespace cuslice::fake {

CUresult read_image_file(const char* path, std::vector<unsigned char>& contents) {
    std::FILE* file = std::fopen(path, "rbe");
    if (file == nullptr)
        return CUDA_ERROR_FILE_NOT_FOUND;
    unsigned char part[65536];
    for (size_t size = 0; (size = std::fread(part, 1, sizeof part, file)) > 0;) {
        contents.insert(contents.end(), part, part + size);
    }
    std::fclose(file);
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake

CUSLICE_ENTRY(cuModuleLoad, out, path) {
    std::vector<unsigned char> contents;
    if (out == nullptr || path == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(read_image_file(path, contents));
    contents.reserve(1);  // an empty file has an address too
    return load(out, contents.data(), {}, contents.size());
}

CUSLICE_ENTRY(cuModuleLoadData, out, image) { return load(out, image); }

// Other options tune a compiler that isn't run.
CUSLICE_ENTRY(cuModuleLoadDataEx, out, image, count, options, values) {
    JitLog log;
    CUSLICE_TRY(log.read(count, options, values));
    return load(out, image, log);
}

CUSLICE_ENTRY(cuModuleLoadFatBinary, out, image) { return load(out, image); }

CUSLICE_ENTRY(cuModuleUnload, module) {
    const DriverLock hold;
    return unload_module(module);
}

CUSLICE_ENTRY_ANYTIME(cuModuleGetLoadingMode, mode) {
    if (mode == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const char* wanted = std::getenv("CUDA_MODULE_LOADING");
    *mode = wanted != nullptr && std::string_view(wanted) == "EAGER" ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuModuleGetFunction, out, handle, name) {
    if (out == nullptr || name == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_FIND_IN(module, modules, handle);
    return find_function(*module, name, *out);
}

CUSLICE_ENTRY(cuModuleGetFunctionCount, count, handle) {
    if (count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_FIND_IN(module, modules, handle);
    if (!module->image->opaque.empty())
        CUSLICE_UNSUPPORTED("cuModuleGetFunctionCount of an image that can't be read");
    *count = static_cast<unsigned>(module->image->kernels.size());
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuModuleEnumerateFunctions, out, room, handle) {
    if (out == nullptr || room == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_FIND_IN(module, modules, handle);
    if (!module->image->opaque.empty())
        CUSLICE_UNSUPPORTED("cuModuleEnumerateFunctions of an image that can't be read");
    for (const KernelInfo& info : module->image->kernels) {
        if (room-- == 0)
            break;
        CUSLICE_TRY(find_function(*module, info.name, *out++));
    }
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuModuleGetGlobal_v2, address, bytes, module, name) {
    Variable variable;
    if (address == nullptr && bytes == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(get_global(module, name, variable));
    if (address != nullptr)
        *address = variable.at;
    if (bytes != nullptr)
        *bytes = variable.size;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuModuleGetGlobal, address, bytes, module, name) {
    Variable variable;
    if (address == nullptr && bytes == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(get_global(module, name, variable));
    if (address != nullptr)
        CUSLICE_UNSUPPORTED("cuModuleGetGlobal with a 32-bit address");
    *bytes = static_cast<unsigned>(variable.size);
    return CUDA_SUCCESS;
}
