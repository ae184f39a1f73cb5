// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inputs of a linker as one image. Nothing is compiled: PTX texts are put behind each other, and of cubins, fat
// binaries and objects the kernels and variables are declared in a text like these.

#include <cstddef>
#include <string>
#include <vector>

#include "fake/driver/cuda_api.h"
#include "fake/driver/image.h"

namespace cuslice::fake {

class Linked {
  public:
    /// For a GPU of this compute capability (major * 10 + minor).
    explicit Linked(int capability) : capability_(capability) {}

    /// Adds an input. Errors as of read_image(); CUDA_ERROR_NOT_SUPPORTED for types that aren't known. `fault` says
    /// what is wrong with a text.
    CUresult add(CUjitInputType type, const char* data, size_t size, std::string& fault);
    bool empty() const { return texts_.empty() && images_.empty(); }
    /// An image for cuModuleLoadData: a lone cubin as it is, and a fat binary that can't be read in place of all, since
    /// any name may be one of its kernels; else a text.
    std::string complete() const;

  private:
    CUresult add_text(const char* data, size_t size, std::string& fault);
    CUresult add_image(const char* data, size_t size);
    CUresult add_object(const char* data, size_t size);

    int capability_;
    std::string texts_, lone_cubin_, unreadable_;
    std::vector<Image> images_;
};

}  // namespace cuslice::fake
