// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the kernels and variables of a module image: from PTX text, from a cubin's symbols and .nv.info, or from the
// parts of a fat binary. Nothing here is executed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fake/code_target.h"
#include "fake/driver/architecture.h"
#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

struct KernelParameter {
    size_t offset = 0, size = 0;
};

struct KernelInfo {
    std::string name;
    bool parameters_known = true;  // `.entry name` without a list: whatever a launch passes is taken unread
    std::vector<KernelParameter> parameters;
    int max_threads = kMaxThreadsPerBlock;
    int registers = 32;    // PTX does not say; this is what a small kernel takes
    int shared_bytes = 0;  // static
    int local_bytes = 0;
    int const_bytes = 0;
    bool cluster_required = false;

    size_t parameter_bytes() const {
        return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
    }
};

struct VariableInfo {
    std::string name;
    size_t size = 0;
    std::vector<unsigned char> contents;  // shorter than size: the rest is zero
    bool managed = false;
};

struct Image {
    std::vector<KernelInfo> kernels;
    std::vector<VariableInfo> variables;
    int capability = 0;      // of the code: major * 10 + minor
    int ptx_capability = 0;  // of the PTX that it is, or was compiled from; 0: not known
    bool is_ptx = false;
    std::vector<Target> targets;                      // of a fat binary: of all its parts,
    std::vector<std::shared_ptr<const Image>> parts;  // and those that can be read
    std::string opaque;                               // why names can't be known; empty if they are
    std::string fault;  // of a text that was refused: what is wrong with it, with the line
};

/// Reads an image as cuModuleLoadData takes it, for a device of the given compute capability (major * 10 + minor).
/// CUDA_ERROR_INVALID_IMAGE: none of the known forms, cut off, or damaged where that can be seen;
/// CUDA_ERROR_INVALID_PTX: a fault in the text, which the image names; CUDA_ERROR_NO_BINARY_FOR_GPU: made for other
/// devices. `capability` 0 takes code for any device. Without a size it is as long as the image itself says, as far as
/// there is memory. Nothing beyond is read.
constexpr uint64_t kUnknownSize = ~0ULL;
CUresult read_image(const void* data, int capability, Image& image, uint64_t size = kUnknownSize);

/// A text as a driver's compiler would take or refuse it: check_ptx and read_ptx.
CUresult compile_ptx(const char* text, size_t size, Image& image);

/// The parts, each of which adds to the image.
bool read_ptx(const char* text, size_t size, Image& image);
bool read_cubin(const unsigned char* data, uint64_t size, Image& image);
/// True if it begins as one.
bool is_cubin(const unsigned char* data, uint64_t size);
/// How long a cubin says it is; 0 if less can be read.
uint64_t size_of_cubin(const unsigned char* data);

/// The kernel of that name, null if there is none; keeps the image alive. In an opaque image any name may be one's:
/// what it takes isn't known then.
std::shared_ptr<const KernelInfo> kernel_named(const std::shared_ptr<const Image>& image, const std::string& name);

/// The part of an image that a device takes: of a fat binary the newest cubin, or else the newest PTX. If that part
/// can't be read, any other that can: all come from one source and have the same names. If no part can be read, the
/// result still tells the code's target. Null if nothing runs there.
std::shared_ptr<const Image> image_for(const std::shared_ptr<const Image>& image, int capability);

}  // namespace cuslice::fake
