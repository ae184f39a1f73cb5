// SPDX-License-Identifier: Apache-2.0
// cublasLtMatmul and the search for its algorithm, of which there is one: none of them computes anything.

#include "fake/cublas/matrix.h"
#include "fake/cublas/status.h"
#include "fake/cublaslt/descriptor.h"
#include "fake/libraries/gpu_work.h"
#include "fake/libraries/report.h"

#include <algorithm>

namespace cuslice::fake {
namespace {

constexpr int kAlgorithm = 0;

struct Layouts {
    const LayoutDescriptor *a, *b, *c, *d;
};

bool is_eight_bits(int type) { return type == real_8f_e4m3 || type == real_8f_e5m2; }

/// cublasLtMatmul's tables of types in cuBLAS's manual.
bool are_types_multiplied(const MatmulDescriptor& work, int a, int b, int c, int d) {
    if (is_eight_bits(a) || is_eight_bits(b)) {
        const auto plain = [](int type) { return type == real_16bf || type == real_16f || type == real_32f; };
        return is_eight_bits(a) && is_eight_bits(b) && !(a == real_8f_e5m2 && b == real_8f_e5m2) &&
               work.compute == compute_32f && work.scale_type == real_32f && plain(c) &&
               (d == c || (is_eight_bits(d) && c != real_32f)) && current_architecture() >= 89;
    }
    if (a != b || c != d)
        return false;
    if (work.compute == compute_32i || work.compute == compute_32i_pedantic) {
        return a == real_8i &&
               ((work.scale_type == real_32i && c == real_32i) || (work.scale_type == real_32f && c == real_8i));
    }
    // Below 32 bits there are rows more than cublasGemmEx has: the FAST types compute those too.
    const bool fast = work.compute == compute_32f_fast_16f || work.compute == compute_32f_fast_16bf ||
                      work.compute == compute_32f_fast_tf32;
    return is_multiplied(fast ? compute_32f : work.compute, a, c) && work.scale_type == scale_type_of(work.compute, c);
}

bool is_good_layout(const LayoutDescriptor& layout) {
    const uint64_t least = layout.order == order_rows ? layout.columns : layout.rows;
    return layout.ld > 0 && static_cast<uint64_t>(layout.ld) >= std::max<uint64_t>(least, 1) && layout.count >= 0;
}

/// All that doesn't depend on addresses.
CublasStatus check_work(const char* function, const MatmulDescriptor* work, const Layouts& at) {
    if (!is_descriptor(work))
        return CublasStatus::invalid_value;
    for (const LayoutDescriptor* layout : {at.a, at.b, at.c, at.d}) {
        if (!is_descriptor(layout))
            return CublasStatus::invalid_value;
        if (layout->order != order_columns && layout->order != order_rows) {
            static constinit std::atomic<bool> said{false};
            if (!said.exchange(true))
                report("%s with matrices in tiles (CUBLASLT_ORDER_COL32…) is not supported", function);
            return CublasStatus::not_supported;
        }
        if (!is_good_layout(*layout) || layout->count != at.d->count)
            return CublasStatus::invalid_value;
    }
    if (!is_operation(work->op_a) || !is_operation(work->op_b) || work->op_c != op_n)
        return CublasStatus::invalid_value;
    const bool a_is_n = work->op_a == op_n;
    const bool b_is_n = work->op_b == op_n;
    const uint64_t m = a_is_n ? at.a->rows : at.a->columns;
    const uint64_t k = a_is_n ? at.a->columns : at.a->rows;
    const uint64_t n = b_is_n ? at.b->columns : at.b->rows;
    if ((b_is_n ? at.b->rows : at.b->columns) != k || at.c->rows != m || at.c->columns != n || at.d->rows != m ||
        at.d->columns != n) {
        return CublasStatus::invalid_value;
    }
    const bool known = are_types_multiplied(*work, static_cast<int>(at.a->type), static_cast<int>(at.b->type),
                                            static_cast<int>(at.c->type), static_cast<int>(at.d->type));
    return known ? CublasStatus::success : CublasStatus::not_supported;
}

bool check_matrix(const char* what, const void* address, const LayoutDescriptor& layout) {
    const bool by_rows = layout.order == order_rows;
    const auto rows = static_cast<int64_t>(by_rows ? layout.columns : layout.rows);
    const auto columns = static_cast<int64_t>(by_rows ? layout.rows : layout.columns);
    // CUBLASLT_BATCH_MODE_POINTER_ARRAY is 1
    const Batch batch = layout.batch_mode == 1 ? Batch::pointers : Batch::strided;
    return check_memory("cublasLtMatmul", what, {address, layout.ld, static_cast<int>(layout.type), layout.stride},
                        rows, columns, batch, layout.count);
}

bool check_bias(const MatmulDescriptor& work, const Layouts& at) {
    const bool of_b = (work.epilogue & epilogue_bias_gradient_b) != 0;
    if ((work.epilogue & (epilogue_bias | epilogue_bias_gradient | epilogue_bias_gradient_a)) == 0 && !of_b)
        return true;
    const int type = work.bias_type >= 0 ? work.bias_type : static_cast<int>(at.d->type);
    const auto length = static_cast<int64_t>(of_b ? at.d->columns : at.d->rows);
    // A type that isn't known here is looked at as if it had one byte.
    return check_memory("cublasLtMatmul", "the bias", {work.bias, length, element_size(type) == 0 ? real_8i : type},
                        length, 1, Batch::none, 1);
}

}  // namespace
}  // namespace cuslice::fake

using namespace cuslice::fake;

extern "C" {

CublasStatus cublasLtMatmulAlgoGetHeuristic(const void* handle, const MatmulDescriptor* work, const LayoutDescriptor* a,
                                            const LayoutDescriptor* b, const LayoutDescriptor* c,
                                            const LayoutDescriptor* d, const PreferenceDescriptor* preference,
                                            int wanted, HeuristicResult* results, int* found) {
    CUSLICE_TRY(check_light_handle(handle));
    if (wanted <= 0 || results == nullptr || found == nullptr || !is_descriptor(preference))
        return CublasStatus::invalid_value;
    *found = 0;
    CUSLICE_TRY(check_work("cublasLtMatmulAlgoGetHeuristic", work, {a, b, c, d}));
    HeuristicResult result{};
    result.algorithm.kind = DescriptorKind::algorithm;
    result.algorithm.id = kAlgorithm;
    result.algorithm.splits = 1;
    result.state = CublasStatus::success;
    result.waves = 1;
    results[0] = result;
    *found = 1;
    return CublasStatus::success;
}

CublasStatus cublasLtMatmul(const void* handle, const MatmulDescriptor* work, const void* alpha, const void* a,
                            const LayoutDescriptor* a_layout, const void* b, const LayoutDescriptor* b_layout,
                            const void* beta, const void* c, const LayoutDescriptor* c_layout, void* d,
                            const LayoutDescriptor* d_layout, const Algorithm* algorithm, void* workspace,
                            size_t workspace_bytes, CUstream stream) {
    CUSLICE_TRY(check_light_handle(handle));
    const Layouts at{a_layout, b_layout, c_layout, d_layout};
    CUSLICE_TRY(check_work("cublasLtMatmul", work, at));
    if (alpha == nullptr || beta == nullptr)
        return CublasStatus::invalid_value;
    if (algorithm != nullptr && (!is_descriptor(algorithm) || algorithm->id != kAlgorithm))
        return CublasStatus::invalid_value;
    if (workspace != nullptr && !memory_is_there(workspace, workspace_bytes))
        return CublasStatus::invalid_value;
    if (d_layout->rows == 0 || d_layout->columns == 0 || d_layout->count == 0)
        return CublasStatus::success;
    const bool reads_c = !(work->pointer_mode == 0 && is_zero(beta, work->scale_type));
    const bool there = check_matrix("A", a, *a_layout) && check_matrix("B", b, *b_layout) &&
                       (!reads_c || check_matrix("C", c, *c_layout)) && check_matrix("D", d, *d_layout) &&
                       check_bias(*work, at);
    return there ? launch_status(launch_kernel(stream)) : CublasStatus::execution_failed;
}

}  // extern "C"
