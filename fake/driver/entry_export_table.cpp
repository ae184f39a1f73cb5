// SPDX-License-Identifier: Apache-2.0
// cuGetExportTable, which the manual does not name.

#include "fake/driver/api_prologue.h"
#include "fake/driver/export_table_asker.h"

using namespace cuslice::fake;

// NVIDIA's runtime asks here for tables by which the driver proves itself. There is no proof to give.
CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid* id) {
    if (table == nullptr || id == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    log_who_asked(__builtin_return_address(0));
    return CUDA_ERROR_NOT_SUPPORTED;
}
