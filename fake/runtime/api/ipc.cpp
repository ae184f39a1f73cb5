// Memory and events that another process opens.

#include "fake/runtime/state.h"

#include <cstring>

using namespace cuslice::fake;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
    return in_context(CU(cuIpcGetMemHandle, 4010), same_layout<CUipcMemHandle>(handle), address(pointer));
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
    CUipcMemHandle copy{};
    static_assert(sizeof copy == sizeof handle);
    std::memcpy(&copy, &handle, sizeof copy);
    return in_context(CU(cuIpcOpenMemHandle, 11000), reinterpret_cast<CUdeviceptr*>(pointer), copy, flags);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) { return in_context(CU(cuIpcCloseMemHandle, 4010), address(pointer)); }

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
    return in_context(CU(cuIpcGetEventHandle, 4010), same_layout<CUipcEventHandle>(handle), event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
    CUipcEventHandle copy{};
    static_assert(sizeof copy == sizeof handle);
    std::memcpy(&copy, &handle, sizeof copy);
    return in_context(CU(cuIpcOpenEventHandle, 4010), event, copy);
}
