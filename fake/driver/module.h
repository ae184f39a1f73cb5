// SPDX-License-Identifier: Apache-2.0
#pragma once
// Modules, libraries and their functions.

#include <map>
#include <memory>
#include <string>

#include "fake/driver/context.h"
#include "fake/driver/image.h"

namespace cuslice::fake {

struct Variable {
    Address at = 0;
    size_t size = 0;
    bool managed = false;
};

struct Module {
    CUmodule handle = nullptr;
    CUcontext context = nullptr;
    std::shared_ptr<const Image> image;
    uint64_t charged = 0;
    std::map<std::string, CUfunction> functions;  // those asked for so far
    std::map<std::string, Variable> variables;
};

struct Function {
    CUmodule module = nullptr;
    CUcontext context = nullptr;
    std::shared_ptr<const KernelInfo> info;
    std::shared_ptr<const Image> image;
    bool loaded = false;  // launched once: its code is on the device
    int dynamic_shared = kSharedPerBlock;
    int carveout = -1;
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
    bool non_portable_cluster = false;
    // For the old way to launch.
    unsigned old_block[3] = {0, 0, 0};
    unsigned old_shared = 0;
};

struct Kernel {
    CUlibrary library = nullptr;
    std::shared_ptr<const KernelInfo> info;
};

struct Library {
    std::shared_ptr<const Image> image;
    std::map<std::string, CUkernel> kernels;
    std::map<CUcontext, CUmodule> modules;  // loaded so far, one for each context
};

inline constinit HandleTable<Module, CUmodule, HandleKind::Module> modules;
inline constinit HandleTable<Function, CUfunction, HandleKind::Function> functions;
inline constinit HandleTable<Kernel, CUkernel, HandleKind::Kernel> kernels;
inline constinit HandleTable<Library, CUlibrary, HandleKind::Library> libraries;

// All of these: the driver's lock is held.

/// Loads an image into a context: charges the module and its variables, which get their initial values.
CUresult load_module(Context& context, std::shared_ptr<const Image> image, CUmodule& out);
CUresult unload_module(CUmodule handle);
/// Ends the modules of a context that ends.
void end_modules(Context& context);

/// The variable of that name: CUDA_ERROR_NOT_FOUND, and one line if the image is opaque.
CUresult find_variable(const Module& module, const std::string& name, Variable& out);
/// The function of that name.
CUresult find_function(Module& module, const std::string& name, CUfunction& out);
/// The module of a library in a context, loaded at the first use.
CUresult library_module(CUlibrary handle, Context& context, CUmodule& out);
/// The function of a kernel in a context.
CUresult kernel_function(CUkernel handle, Context& context, CUfunction& out);
/// A function from what a launch may be given: a CUfunction, or a CUkernel, which stands for its function in the
/// context.
CUresult launchable(CUfunction handle, Context& context, Function*& out);

/// Puts a function's code on the device, as its first launch does: charged with the module.
CUresult load_function(Function& function);

/// Checks a kernel node as a launch is checked; takes the driver's lock itself. `params` gets the function's context.
CUresult check_kernel_node(CUDA_KERNEL_NODE_PARAMS_v3& params, std::shared_ptr<const KernelInfo>& info);

/// An attribute of a kernel; `function` may be null for one that isn't loaded anywhere.
CUresult kernel_attribute(const KernelInfo& info, const Function* function, const GpuSpec& gpu, const Image& image,
                          CUfunction_attribute attribute, int& value);

/// Where a kernel's parameter is, and its size if that is asked for; CUDA_ERROR_NOT_SUPPORTED where they aren't known.
CUresult parameter_info(const KernelInfo& info, size_t index, size_t* offset, size_t* size);
CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value);

}  // namespace cuslice::fake
