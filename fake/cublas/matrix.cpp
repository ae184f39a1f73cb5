// SPDX-License-Identifier: Apache-2.0
#include "fake/cublas/matrix.h"

#include "fake/libraries/gpu_work.h"
#include "fake/libraries/report.h"

#include <algorithm>

namespace cuslice::fake {
namespace {

// The product of two 64-bit numbers of a program.
__extension__ using Wide = __int128;

}  // namespace

bool check_memory(const char* function, const char* what, const Matrix& matrix, int64_t rows, int64_t columns,
                  Batch batch, int64_t count) {
    if (rows == 0 || columns == 0 || count == 0)
        return true;
    uint64_t bytes = 0;
    if (batch == Batch::pointers) {
        // Only the GPU can read the addresses of the matrices: check the array that holds them.
        bytes = static_cast<uint64_t>(count) * sizeof(void*);
    } else {
        // A stride below zero is documented nowhere; the first matrix alone is looked at then.
        const auto before_last = matrix.stride > 0 ? Wide{count - 1} * matrix.stride : Wide{0};
        const Wide all = (before_last + Wide{columns - 1} * matrix.ld + rows) * Wide{element_size(matrix.type)};
        bytes = all > Wide{~uint64_t{0}} ? ~uint64_t{0} : static_cast<uint64_t>(all);
    }
    if (memory_is_there(matrix.address, bytes))
        return true;
    report_no_memory(function, what, matrix.address, bytes);
    return false;
}

bool is_zero(const void* scalar, int type) {
    const auto* bytes = static_cast<const unsigned char*>(scalar);
    return std::all_of(bytes, bytes + element_size(type), [](unsigned char byte) { return byte == 0; });
}

// The table of cublasGemmEx in cuBLAS's manual.
bool is_multiplied(int compute, int ab, int c) {
    switch (compute) {
        case compute_16f:
        case compute_16f_pedantic:
            return ab == real_16f && c == real_16f;
        case compute_32i:
        case compute_32i_pedantic:
            return ab == real_8i && c == real_32i;
        case compute_32f:
        case compute_32f_pedantic:
            switch (ab) {
                case real_16f:
                case real_16bf:
                    return c == ab || c == real_32f;
                case real_8i:
                    return c == real_32f;
                case complex_8i:
                    return c == complex_32f;
                default:
                    return c == ab && (ab == real_32f || ab == complex_32f);
            }
        case compute_32f_fast_16f:
        case compute_32f_fast_16bf:
        case compute_32f_fast_tf32:
        case compute_32f_emulated_16bfx9:
            return c == ab && (ab == real_32f || ab == complex_32f);
        case compute_64f:
        case compute_64f_pedantic:
        case compute_64f_emulated_fixedpoint:
            return c == ab && (ab == real_64f || ab == complex_64f);
        default:
            return false;
    }
}

int scale_type_of(int compute, int c) {
    const bool is_complex = c == complex_32f || c == complex_64f;
    switch (compute) {
        case compute_16f:
        case compute_16f_pedantic:
            return real_16f;
        case compute_32i:
        case compute_32i_pedantic:
            return real_32i;
        case compute_64f:
        case compute_64f_pedantic:
        case compute_64f_emulated_fixedpoint:
            return is_complex ? complex_64f : real_64f;
        default:
            return is_complex ? complex_32f : real_32f;
    }
}

}  // namespace cuslice::fake
