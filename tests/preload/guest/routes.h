// By which way a guest comes to the driver's functions. Under a slice every one of them has to end in libcuslice.so.
#pragma once

#include <string>

#include "virtual_gpu/driver/cuda_api.h"

// symbol, name and version for cuGetProcAddress
#define GUEST_FUNCTIONS(F)                                                     \
    F(cuInit, cuInit, 2000)                                                    \
    F(cuDeviceGetCount, cuDeviceGetCount, 2000)                                \
    F(cuDeviceGetName, cuDeviceGetName, 2000)                                  \
    F(cuDeviceGetUuid_v2, cuDeviceGetUuid, 11040)                              \
    F(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010)                          \
    F(cuDeviceTotalMem, cuDeviceTotalMem, 2000)                                \
    F(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020)                             \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)                \
    F(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000)          \
    F(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000)              \
    F(cuCtxCreate_v2, cuCtxCreate, 3020)                                       \
    F(cuCtxDestroy_v2, cuCtxDestroy, 4000)                                     \
    F(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                  \
    F(cuCtxGetCurrent, cuCtxGetCurrent, 4000)                                  \
    F(cuDeviceGetDevResource, cuDeviceGetDevResource, 12040)                   \
    F(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc, 12040)             \
    F(cuGreenCtxCreate, cuGreenCtxCreate, 12040)                               \
    F(cuGreenCtxDestroy, cuGreenCtxDestroy, 12040)                             \
    F(cuCtxFromGreenCtx, cuCtxFromGreenCtx, 12040)                             \
    F(cuCtxSynchronize, cuCtxSynchronize, 2000)                                \
    F(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000)                      \
    F(cuLaunchHostFunc, cuLaunchHostFunc, 10000)                               \
    F(cuPointerGetAttribute, cuPointerGetAttribute, 4000)                      \
    F(cuPointerSetAttribute, cuPointerSetAttribute, 6000)                      \
    F(cuMemGetHandleForAddressRange, cuMemGetHandleForAddressRange, 11070)     \
    F(cuMemAlloc, cuMemAlloc, 2000)                                            \
    F(cuMemAlloc_v2, cuMemAlloc, 3020)                                         \
    F(cuMemAllocPitch_v2, cuMemAllocPitch, 3020)                               \
    F(cuMemAllocManaged, cuMemAllocManaged, 6000)                              \
    F(cuMemFree, cuMemFree, 2000)                                              \
    F(cuMemFree_v2, cuMemFree, 3020)                                           \
    F(cuMemGetInfo, cuMemGetInfo, 2000)                                        \
    F(cuMemGetInfo_v2, cuMemGetInfo, 3020)                                     \
    F(cuMemsetD32_v2, cuMemsetD32, 3020)                                       \
    F(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020)                                     \
    F(cuMemAllocAsync, cuMemAllocAsync, 11020)                                 \
    F(cuMemFreeAsync, cuMemFreeAsync, 11020)                                   \
    F(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020)                 \
    F(cuMemPoolCreate, cuMemPoolCreate, 11020)                                 \
    F(cuMemPoolDestroy, cuMemPoolDestroy, 11020)                               \
    F(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020)                                 \
    F(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020)                     \
    F(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020)                           \
    F(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020)             \
    F(cuArray3DCreate_v2, cuArray3DCreate, 3020)                               \
    F(cuArrayDestroy, cuArrayDestroy, 2000)                                    \
    F(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000)                    \
    F(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000)                  \
    F(cuMemCreate, cuMemCreate, 10020)                                         \
    F(cuMemRelease, cuMemRelease, 10020)                                       \
    F(cuMemAddressReserve, cuMemAddressReserve, 10020)                         \
    F(cuMemAddressFree, cuMemAddressFree, 10020)                               \
    F(cuMemMap, cuMemMap, 10020)                                               \
    F(cuMemUnmap, cuMemUnmap, 10020)                                           \
    F(cuMemMapArrayAsync, cuMemMapArrayAsync, 11010)                           \
    F(cuMulticastCreate, cuMulticastCreate, 12010)                             \
    F(cuMulticastAddDevice, cuMulticastAddDevice, 12010)                       \
    F(cuMulticastBindMem, cuMulticastBindMem, 12010)                           \
    F(cuMulticastBindAddr, cuMulticastBindAddr, 12010)                         \
    F(cuMulticastUnbind, cuMulticastUnbind, 12010)                             \
    F(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000)         \
    F(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020)       \
    F(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020)   \
    F(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010)                              \
    F(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000)                        \
    F(cuImportExternalMemory, cuImportExternalMemory, 10000)                   \
    F(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer, 10000) \
    F(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000)                 \
    F(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010)                          \
    F(cuIpcGetEventHandle, cuIpcGetEventHandle, 4010)                          \
    F(cuIpcOpenEventHandle, cuIpcOpenEventHandle, 4010)                        \
    F(cuEventCreate, cuEventCreate, 2000)                                      \
    F(cuEventRecord, cuEventRecord, 2000)                                      \
    F(cuStreamWaitEvent, cuStreamWaitEvent, 3020)                              \
    F(cuStreamCreate, cuStreamCreate, 2000)                                    \
    F(cuStreamDestroy_v2, cuStreamDestroy, 4000)                               \
    F(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010)                    \
    F(cuStreamEndCapture, cuStreamEndCapture, 10000)                           \
    F(cuGraphCreate, cuGraphCreate, 10000)                                     \
    F(cuGraphDestroy, cuGraphDestroy, 10000)                                   \
    F(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040)                   \
    F(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040)                     \
    F(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040)         \
    F(cuGraphLaunch, cuGraphLaunch, 10000)                                     \
    F(cuGraphUpload, cuGraphUpload, 11010)                                     \
    F(cuGraphExecDestroy, cuGraphExecDestroy, 10000)                           \
    F(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040)                       \
    F(cuModuleLoadData, cuModuleLoadData, 2000)                                \
    F(cuModuleGetFunction, cuModuleGetFunction, 2000)                          \
    F(cuLaunchKernel, cuLaunchKernel, 4000)                                    \
    F(cuCtxGetLimit, cuCtxGetLimit, 3010)                                      \
    F(cuCtxSetLimit, cuCtxSetLimit, 3010)                                      \
    F(cuModuleUnload, cuModuleUnload, 2000)                                    \
    F(cuGetProcAddress_v2, cuGetProcAddress, 12000)

namespace guest {

struct Driver {
#define GUEST_POINTER(symbol, name, version) decltype(&::symbol) symbol = nullptr;
    GUEST_FUNCTIONS(GUEST_POINTER)
#undef GUEST_POINTER
    // The per-thread forms, which have no declaration of their own.
    decltype(&::cuMemAllocAsync) cuMemAllocAsync_ptsz = nullptr;
    decltype(&::cuMemFreeAsync) cuMemFreeAsync_ptsz = nullptr;
};

/// Fills the table by one of these routes; otherwise false, and why:
///   linked          (only in guest_linked, which names the driver as a library it needs)
///   dlopen=NAME     dlopen and dlsym
///   deepbind=FILE   a module, linked to libcuda.so.1 and opened with RTLD_DEEPBIND, calls
///   module=FILE,ROUTE      a module, opened as any, which takes this route
///   deepmodule=FILE,ROUTE  the same, opened with RTLD_DEEPBIND
///   v1, v2          cuGetProcAddress and cuGetProcAddress_v2, themselves from dlsym
///   nested          cuGetProcAddress_v2 as looked up by cuGetProcAddress as looked up by cuGetProcAddress
///   flag2           as v2, with CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
bool fill(Driver& driver, const std::string& route, std::string& why);

}  // namespace guest
