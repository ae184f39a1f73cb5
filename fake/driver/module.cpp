// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/module.h"

#include <algorithm>

#include "fake/driver/log.h"
#include "fake/driver/state.h"

namespace cuslice::fake {

namespace {

/// A variable's memory: managed ones can be touched by the host, as the others cannot.
CUresult make_variable(Context& context, const VariableInfo& info, Variable& out) {
    Gpu& gpu = *context.gpu;
    if (info.managed) {
        CUSLICE_TRY(gpu.open_region(gpu.managed));
    }
    Region& region = info.managed ? gpu.managed : gpu.device;
    out.size = info.size;
    out.managed = info.managed;
    if (info.size == 0)
        return CUDA_SUCCESS;
    CUSLICE_TRY(gpu.allocate(region, info.size, BlockKind::Global, context.number, out.at));
    region.space.fill(out.at, 0, info.size);
    const size_t given = std::min(info.contents.size(), info.size);
    if (given > 0)
        region.space.write(out.at, info.contents.data(), given);
    return CUDA_SUCCESS;
}

void note(Gpu& gpu, const Module& module, int sign) {
    uint64_t bytes = module.charged;
    for (const auto& [name, variable] : module.variables)
        bytes += rounded(variable.size);
    gpu.books.note_modules(sign * static_cast<int64_t>(bytes));
}

void free_variables(Gpu& gpu, const Module& module) {
    for (const auto& [name, variable] : module.variables) {
        if (variable.size != 0)
            gpu.free_at(variable.managed ? gpu.managed : gpu.device, variable.at);
    }
}

void end_module(Module& module) {
    Gpu& gpu = *contexts.find(module.context)->gpu;
    note(gpu, module, -1);
    for (const auto& [name, function] : module.functions)
        functions.destroy(function);
    free_variables(gpu, module);
    gpu.release(module.charged);
    modules.destroy(module.handle);
}

}  // namespace

CUresult load_module(Context& context, std::shared_ptr<const Image> image, CUmodule& out) {
    if (!image->fault.empty())
        return CUDA_ERROR_INVALID_PTX;
    Gpu& gpu = *context.gpu;
    Module module;
    module.context = context.handle;
    module.charged = gpu.spec.module;
    if (!gpu.charge(module.charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (const VariableInfo& info : image->variables) {
        Variable variable;
        if (const CUresult bad = make_variable(context, info, variable); bad != CUDA_SUCCESS) {
            free_variables(gpu, module);
            gpu.release(module.charged);
            return bad;
        }
        module.variables[info.name] = variable;
    }
    module.image = std::move(image);
    note(gpu, module, 1);
    const auto [handle, made] = modules.create(std::move(module));
    made->handle = handle;
    out = handle;
    return CUDA_SUCCESS;
}

CUresult unload_module(CUmodule handle) {
    CUSLICE_FIND_IN(module, modules, handle);
    end_module(*module);
    return CUDA_SUCCESS;
}

void end_modules(Context& context) {
    modules.each([&](CUmodule, Module& module) {
        if (module.context == context.handle)
            end_module(module);
    });
    libraries.each([&](CUlibrary, Library& library) { library.modules.erase(context.handle); });
}

CUresult find_variable(const Module& module, const std::string& name, Variable& out) {
    static std::atomic<bool> said{false};
    const auto found = module.variables.find(name);
    if (found != module.variables.end()) {
        out = found->second;
        return CUDA_SUCCESS;
    }
    if (const std::string& why = module.image->opaque; !why.empty() && !said.exchange(true))
        log_line("variable '" + name + "' was asked for in " + why +
                 ", which the fake GPU can't read: it has none; build with nvcc --no-compress, or load PTX");
    return CUDA_ERROR_NOT_FOUND;
}

CUresult find_function(Module& module, const std::string& name, CUfunction& out) {
    const auto known = module.functions.find(name);
    if (known != module.functions.end()) {
        out = known->second;
        return CUDA_SUCCESS;
    }
    const auto info = kernel_named(module.image, name);
    if (info == nullptr)
        return CUDA_ERROR_NOT_FOUND;
    const Function function{.module = module.handle,
                            .context = module.context,
                            .info = info,
                            .image = module.image,
                            .dynamic_shared = kSharedPerBlock - info->shared_bytes};
    module.functions[name] = out = functions.create(function).first;
    return CUDA_SUCCESS;
}

CUresult library_module(CUlibrary handle, Context& context, CUmodule& out) {
    CUSLICE_FIND_IN(library, libraries, handle);
    const auto known = library->modules.find(context.handle);
    if (known != library->modules.end()) {
        out = known->second;
        return CUDA_SUCCESS;
    }
    std::shared_ptr<const Image> image = image_for(library->image, context.gpu->spec.capability());
    if (image == nullptr)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    CUSLICE_TRY(load_module(context, std::move(image), out));
    library->modules[context.handle] = out;
    return CUDA_SUCCESS;
}

CUresult kernel_function(CUkernel handle, Context& context, CUfunction& out) {
    CUSLICE_FIND_IN(kernel, kernels, handle);
    CUmodule module = nullptr;
    CUSLICE_TRY(library_module(kernel->library, context, module));
    return find_function(*modules.find(module), kernel->info->name, out);
}

CUresult launchable(CUfunction handle, Context& context, Function*& out) {
    out = functions.find(handle);
    if (out == nullptr) {
        CUfunction function = nullptr;
        CUSLICE_TRY(kernel_function(reinterpret_cast<CUkernel>(handle), context, function));
        out = functions.find(function);
    }
    return out->context == context.handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kernel_attribute(const KernelInfo& info, const Function* function, const GpuSpec& gpu, const Image& image,
                          CUfunction_attribute attribute, int& value) {
    const int binary = image.is_ptx || image.capability == 0 ? gpu.capability() : image.capability;
    switch (static_cast<int>(attribute)) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            value = info.max_threads;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            value = info.shared_bytes;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            value = info.const_bytes;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            value = info.local_bytes;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            value = info.registers;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
            value = image.ptx_capability != 0 ? image.ptx_capability : binary;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            value = binary;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            value = function != nullptr ? function->dynamic_shared : kSharedPerBlock - info.shared_bytes;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            value = function != nullptr ? function->carveout : -1;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
            value = info.cluster_required;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            value = 0;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            value = function != nullptr && function->non_portable_cluster;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace cuslice::fake
