// cuGetProcAddress: (name, version, flags) → symbol, as NVIDIA's drivers answer it.

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "virtual_gpu/fake/driver/gate.h"
#include "virtual_gpu/fake/driver/injection.h"
#include "virtual_gpu/fake/driver/lookup.h"
#include "virtual_gpu/fake/driver/newer.h"

using namespace cuslice::fake;

namespace {

using Index = std::unordered_map<std::string_view, std::vector<const Exported*>>;

/// Rows by name; made at the first look-up and kept.
const Index& index_by_name() {
    static const auto* index = [] {
        auto* made = new Index;
        for (const Exported& row : exported_functions()) (*made)[row.name].push_back(&row);
        if (newer_driver()) {
            for (const Exported& row : newer_functions()) (*made)[row.name].push_back(&row);
        }
        return made;
    }();
    return *index;
}

struct Answer {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

/// The newest form that is no newer than the version asked for. The per-thread flag prefers the per-thread form; where
/// a function has none, the only form there is serves both.
Answer look_up(const char* name, int version, cuuint64_t flags) {
    const auto found = index_by_name().find(name);
    if (found == index_by_name().end()) return {};
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    const Exported* best[2] = {nullptr, nullptr};
    for (const Exported* row : found->second) {
        if (row->version > version) continue;
        const Exported*& slot = best[row->per_thread ? 1 : 0];
        if (slot == nullptr || row->version > slot->version) slot = row;
    }
    const Exported* chosen = per_thread && best[1] != nullptr ? best[1] : best[0];
    if (chosen == nullptr) return {nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
    return {chosen->address, CU_GET_PROC_ADDRESS_SUCCESS};
}

bool valid_flags(cuuint64_t flags) { return flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM; }

}  // namespace

namespace cuslice::fake {

bool is_driver_function(const std::string& name) {
    for (const Exported& row : exported_functions()) {
        if (name == row.symbol) return true;
    }
    return false;
}

}  // namespace cuslice::fake

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
    CUSLICE_ENTER_ANYTIME(cuGetProcAddress)
    if (symbol == nullptr || pfn == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    const Answer answer = look_up(symbol, version, flags);
    if (answer.address == nullptr) return CUDA_ERROR_NOT_FOUND;
    *pfn = answer.address;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
    CUSLICE_ENTER_ANYTIME(cuGetProcAddress_v2)
    if (symbol == nullptr || pfn == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    const Answer answer = look_up(symbol, version, flags);
    *pfn = answer.address;
    if (status != nullptr) *status = answer.status;
    return CUDA_SUCCESS;
}
