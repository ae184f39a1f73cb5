// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/jit_log.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace cuslice::fake {

CUresult JitLog::read(unsigned count, const CUjit_option* options, void** values) {
    if (count > 0 && (options == nullptr || values == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (static_cast<unsigned>(options[i]) >= CU_JIT_NUM_OPTIONS)
            return CUDA_ERROR_INVALID_VALUE;
        const bool info = options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
        Buffer& buffer = info ? info_ : error_;
        if (options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER) {
            buffer.text = static_cast<char*>(values[i]);
        } else if (info || options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            buffer.room = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
            buffer.written = &values[i];
        }
    }
    return CUDA_SUCCESS;
}

void JitLog::write(std::string_view error) const {
    info_.write("");
    error_.write(error);
}

void JitLog::Buffer::write(std::string_view log) const {
    size_t length = 0;
    if (text != nullptr && room > 0) {
        length = std::min(log.size(), room - 1);
        std::memcpy(text, log.data(), length);
        text[length] = '\0';
    }
    if (written != nullptr)
        *written = reinterpret_cast<void*>(length);
}

}  // namespace cuslice::fake
