// SPDX-License-Identifier: Apache-2.0
#pragma once
// The logs that programs ask of the compiler: buffers of theirs, given as options. Nothing is compiled here, so that
// there is nothing to inform of; a text that is refused has its fault in the error log.

#include <cstddef>
#include <string_view>

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

class JitLog {
  public:
    /// Finds the buffers: CUDA_ERROR_INVALID_VALUE for an option that there is not. `values` is kept: sizes go there.
    CUresult read(unsigned count, const CUjit_option* options, void** values);
    /// Writes both logs, each cut where its buffer ends, and how many characters they have.
    void write(std::string_view error) const;

  private:
    struct Buffer {
        char* text = nullptr;
        size_t room = 0;
        void** written = nullptr;
        void write(std::string_view log) const;
    };
    Buffer info_, error_;
};

}  // namespace cuslice::fake
