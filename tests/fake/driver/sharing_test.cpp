// SPDX-License-Identifier: Apache-2.0
// Memory of one process in another: the same bytes, and one of them pays.

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/peer_process.h"

using namespace fake_test;

namespace {

unsigned value_at(CUdeviceptr address) {
    unsigned value = 0;
    return cuMemcpyDtoH(&value, address, sizeof value) == CUDA_SUCCESS ? value : 0;
}

/// Maps physical memory for reading and writing.
CUdeviceptr mapped(const Report& report, CUmemGenericAllocationHandle handle, size_t size) {
    CUdeviceptr at = 0;
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQUAL(cuMemAddressReserve(&at, size, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQUAL(cuMemMap(at, size, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQUAL(cuMemSetAccess(at, size, &access, 1), CUDA_SUCCESS);
    return at;
}

}  // namespace

TEST_CASE("an allocation that another process opens by its handle holds the same bytes, and is charged once",
          "[at once]") {
    const size_t size = GENERATE(size_t{1000}, 5 * MiB + 12, 64 * MiB);
    CAPTURE(size);
    CHECK(in_child(one_t4, [&](const Report& report) {
              const Peer owner([&](const Peer& peer) {
                  use_device(report);
                  CUdeviceptr before = 0, block = 0;
                  EXPECT_EQUAL(cuMemAlloc(&before, 512), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAlloc(&block, size), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemsetD32(block, 7, size / 4), CUDA_SUCCESS);
                  CUipcMemHandle handle;
                  EXPECT_EQUAL(cuIpcGetMemHandle(&handle, block), CUDA_SUCCESS);
                  peer.send(handle);
                  peer.receive<int>();
                  peer.send(value_at(block + size / 8 * 4));
                  EXPECT_EQUAL(cuMemsetD32(block, 9, size / 4), CUDA_SUCCESS);
                  peer.send(1);
                  peer.receive<int>();
              });
              const auto handle = owner.receive<CUipcMemHandle>();
              use_device(report);
              const size_t free = free_bytes();
              CUdeviceptr block = 0, again = 0;
              EXPECT_EQUAL(cuIpcOpenMemHandle(&block, handle, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(value_at(block), 7U);
              EXPECT_EQUAL(value_at(block + size / 8 * 4), 7U);
              EXPECT_EQUAL(cuMemsetD32(block, 8, size / 4), CUDA_SUCCESS);
              owner.send(1);
              EXPECT_EQUAL(owner.receive<unsigned>(), 8U);
              owner.receive<int>();
              EXPECT_EQUAL(value_at(block), 9U);
              EXPECT_EQUAL(cuIpcOpenMemHandle(&again, handle, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(again, block);
              EXPECT_EQUAL(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuIpcCloseMemHandle(block), CUDA_SUCCESS);
              EXPECT_EQUAL(value_at(block), 9U);
              EXPECT_EQUAL(cuIpcCloseMemHandle(block), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcCloseMemHandle(block), CUDA_ERROR_INVALID_VALUE);
              unsigned value = 0;
              EXPECT_EQUAL(cuMemcpyDtoH(&value, block, 4), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(free_bytes(), free);
              owner.send(1);
              owner.wait();
          }) == "");
}

TEST_CASE("memory that another process still holds is charged to it once its owner has freed it, or is killed") {
    const bool killed = GENERATE(false, true);
    CHECK(in_child(one_t4, [&](const Report& report) {
              const Peer owner([&](const Peer& peer) {
                  use_device(report);
                  CUdeviceptr block = 0;
                  EXPECT_EQUAL(cuMemAlloc(&block, 100 * MiB), CUDA_SUCCESS);
                  CUipcMemHandle handle;
                  EXPECT_EQUAL(cuIpcGetMemHandle(&handle, block), CUDA_SUCCESS);
                  peer.send(handle);
                  peer.receive<int>();
                  EXPECT_EQUAL(cuMemFree(block), CUDA_SUCCESS);
                  peer.send(1);
                  peer.receive<int>();
              });
              const auto handle = owner.receive<CUipcMemHandle>();
              use_device(report);
              const size_t free = free_bytes();
              CUdeviceptr block = 0, other = 0;
              EXPECT_EQUAL(cuIpcOpenMemHandle(&block, handle, 1), CUDA_SUCCESS);
              if (killed) {
                  owner.kill();
                  EXPECT_EQUAL(free_bytes(), free + 104 * MiB);
              } else {
                  owner.send(1);
                  owner.receive<int>();
                  EXPECT_EQUAL(free_bytes(), free);
              }
              const size_t left = free_bytes();
              EXPECT_EQUAL(cuMemAlloc(&other, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuIpcCloseMemHandle(block), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), left + 100 * MiB);
              // A freed block can't be opened any more.
              EXPECT_EQUAL(cuIpcOpenMemHandle(&block, handle, 1), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("handles of other processes are checked") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr block = 0, opened = 0;
              CUipcMemHandle handle{};
              EXPECT_EQUAL(cuMemAlloc(&block, 4096), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcGetMemHandle(&handle, block + 512), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuIpcGetMemHandle(&handle, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuIpcOpenMemHandle(&opened, handle, 1), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuIpcGetMemHandle(&handle, block), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcOpenMemHandle(&opened, handle, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuIpcOpenMemHandle(&opened, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuIpcCloseMemHandle(block), CUDA_ERROR_INVALID_VALUE);
              const size_t free = free_bytes();
              EXPECT_EQUAL(cuMemFree(block), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free + 4096);
          }) == "");
}

TEST_CASE("physical memory that was sent as a descriptor is the same in both processes, and outlives its maker",
          "[at once]") {
    const bool killed = GENERATE(false, true);  // before it is imported
    CHECK(in_child(one_t4, [&](const Report& report) {
              const Peer owner([&](const Peer& peer) {
                  use_device(report);
                  CUmemGenericAllocationHandle handle = 0;
                  const CUmemAllocationProp prop = exportable_memory();
                  EXPECT_EQUAL(cuMemCreate(&handle, 4 * MiB, &prop, 0), CUDA_SUCCESS);
                  const CUdeviceptr at = mapped(report, handle, 4 * MiB);
                  EXPECT_EQUAL(cuMemsetD32(at, 5, MiB), CUDA_SUCCESS);
                  int file = -1;
                  EXPECT_EQUAL(cuMemExportToShareableHandle(&file, handle, prop.requestedHandleTypes, 0), CUDA_SUCCESS);
                  peer.send(1, file);
                  peer.receive<int>();
                  peer.send(value_at(at + 2 * MiB));
                  EXPECT_EQUAL(cuMemUnmap(at, 4 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
                  close(file);
                  peer.send(1);
                  peer.receive<int>();
              });
              int file = -1;
              owner.receive<int>(&file);
              if (killed)
                  owner.kill();
              use_device(report);
              const size_t free = free_bytes();  // a descriptor keeps the memory on the GPU
              CUmemGenericAllocationHandle handle = 0;
              void* descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(file));
              const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              EXPECT_EQUAL(cuMemImportFromShareableHandle(&handle, descriptor, type), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              CUmemAllocationProp prop{};
              EXPECT_EQUAL(cuMemGetAllocationPropertiesFromHandle(&prop, handle), CUDA_SUCCESS);
              EXPECT_EQUAL(prop.location.id, 0);
              const CUdeviceptr at = mapped(report, handle, 4 * MiB);
              EXPECT_EQUAL(value_at(at + 2 * MiB), 5U);
              EXPECT_EQUAL(cuMemsetD32(at, 6, MiB), CUDA_SUCCESS);
              if (!killed) {
                  owner.send(1);
                  EXPECT_EQUAL(owner.receive<unsigned>(), 6U);
                  owner.receive<int>();
                  EXPECT_EQUAL(free_bytes(), free);
              }
              EXPECT_EQUAL(value_at(at), 6U);
              EXPECT_EQUAL(cuMemUnmap(at, 4 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              // It has its contents still, for whoever imports it next.
              EXPECT_EQUAL(cuMemImportFromShareableHandle(&handle, descriptor, type), CUDA_SUCCESS);
              const CUdeviceptr again = mapped(report, handle, 4 * MiB);
              EXPECT_EQUAL(value_at(again), 6U);
              close(file);
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(cuMemUnmap(again, 4 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free + 4 * MiB);
          }) == "");
}

TEST_CASE("physical memory that is imported where it was made is one more reference to it") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              CUmemGenericAllocationHandle handle = 0, plain = 0, again = 0;
              CUmemAllocationProp prop = exportable_memory();
              int file = -1;
              EXPECT_EQUAL(cuMemCreate(&handle, 2 * MiB, &prop, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemExportToShareableHandle(&file, handle, prop.requestedHandleTypes, 0), CUDA_SUCCESS);
              void* descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(file));
              const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              EXPECT_EQUAL(cuMemImportFromShareableHandle(&again, descriptor, type), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 2 * MiB);
              EXPECT_EQUAL(cuMemRelease(again), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 2 * MiB);
              close(file);
              EXPECT_EQUAL(free_bytes(), free);
              prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
              EXPECT_EQUAL(cuMemCreate(&plain, 2 * MiB, &prop, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemExportToShareableHandle(&file, plain, type, 0), CUDA_ERROR_INVALID_VALUE);
              void* not_memory = reinterpret_cast<void*>(intptr_t{0});
              EXPECT_EQUAL(cuMemImportFromShareableHandle(&again, not_memory, type), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a descriptor of physical memory can be imported as external memory, and mapped in parts", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const Peer owner([&](const Peer& peer) {
                  use_device(report);
                  CUmemGenericAllocationHandle handle = 0;
                  const CUmemAllocationProp prop = exportable_memory();
                  EXPECT_EQUAL(cuMemCreate(&handle, 4 * MiB, &prop, 0), CUDA_SUCCESS);
                  const CUdeviceptr at = mapped(report, handle, 4 * MiB);
                  EXPECT_EQUAL(cuMemsetD32(at + 2 * MiB, 5, 1024), CUDA_SUCCESS);
                  int file = -1;
                  EXPECT_EQUAL(cuMemExportToShareableHandle(&file, handle, prop.requestedHandleTypes, 0), CUDA_SUCCESS);
                  peer.send(1, file);
                  peer.receive<int>();
              });
              int file = -1;
              owner.receive<int>(&file);
              use_device(report);
              const size_t free = free_bytes();
              CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc{};
              desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
              desc.handle.fd = file;
              CUexternalMemory memory = nullptr;
              desc.size = 5 * MiB;
              EXPECT_EQUAL(cuImportExternalMemory(&memory, &desc), CUDA_ERROR_INVALID_VALUE);
              desc.size = 4 * MiB;
              EXPECT_EQUAL(cuImportExternalMemory(&memory, &desc), CUDA_SUCCESS);
              CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
              part.offset = 2 * MiB;
              part.size = 2 * MiB + 1;
              CUdeviceptr a = 0, b = 0;
              EXPECT_EQUAL(cuExternalMemoryGetMappedBuffer(&a, memory, &part), CUDA_ERROR_INVALID_VALUE);
              part.size = 4096;
              EXPECT_EQUAL(cuExternalMemoryGetMappedBuffer(&a, memory, &part), CUDA_SUCCESS);
              EXPECT_EQUAL(cuExternalMemoryGetMappedBuffer(&b, memory, &part), CUDA_SUCCESS);
              EXPECT_EQUAL(value_at(a), 5U);
              EXPECT_EQUAL(cuMemsetD32(a, 6, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(value_at(b), 6U);
              EXPECT_EQUAL(free_bytes(), free);
              owner.kill();
              EXPECT_EQUAL(free_bytes(), free + 104 * MiB);  // its memory is this process's now
              EXPECT_EQUAL(cuMemFree(a), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDestroyExternalMemory(memory), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(value_at(b), 6U);
              EXPECT_EQUAL(cuMemFree(b), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free + 108 * MiB);
          }) == "");
}

TEST_CASE("an allocation of a pool can be read and written in another process, and is freed there first", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const Peer owner([&](const Peer& peer) {
                  use_device(report);
                  CUmemPoolProps props{};
                  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
                  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
                  CUmemoryPool pool = nullptr;
                  CUdeviceptr block = 0;
                  int file = -1;
                  CUmemPoolPtrExportData data;
                  EXPECT_EQUAL(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemPoolExportToShareableHandle(&file, pool, props.handleTypes, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&block, 4 * MiB, pool, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemsetD32(block, 3, MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemPoolExportPointer(&data, block), CUDA_SUCCESS);
                  peer.send(data, file);
                  peer.receive<int>();
                  peer.send(value_at(block + 2 * MiB));
                  EXPECT_EQUAL(cuMemFree(block), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemPoolDestroy(pool), CUDA_SUCCESS);
              });
              int file = -1;
              auto data = owner.receive<CUmemPoolPtrExportData>(&file);
              use_device(report);
              CUmemoryPool pool = nullptr;
              CUdeviceptr block = 0, none = 0;
              const size_t free = free_bytes();
              EXPECT_EQUAL(
                  cuMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                  CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&none, 4096, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemPoolImportPointer(&block, pool, &data), CUDA_SUCCESS);
              EXPECT_EQUAL(value_at(block + 2 * MiB), 3U);
              EXPECT_EQUAL(cuMemsetD32(block, 4, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(cuIpcCloseMemHandle(block), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFreeAsync(block, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
              owner.send(1);
              EXPECT_EQUAL(owner.receive<unsigned>(), 4U);
              owner.wait();
              EXPECT_EQUAL(cuMemPoolDestroy(pool), CUDA_SUCCESS);
          }) == "");
}

// H200, driver 580.159.04, 2026-11-27.
TEST_CASE("a pool that is imported where it was made takes its own allocations, and no other pool does", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              CUmemPoolProps props{};
              props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
              props.handleTypes = type;
              props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
              CUmemoryPool a = nullptr, b = nullptr, imported_a = nullptr, imported_b = nullptr;
              CUdeviceptr block = 0, plain = 0, opened = 0;
              CUmemPoolPtrExportData data{}, of_plain{}, zeros{};
              const auto imported = [&](CUmemoryPool pool, CUmemoryPool& out) {
                  int file = -1;
                  EXPECT_EQUAL(cuMemPoolExportToShareableHandle(&file, pool, type, 0), CUDA_SUCCESS);
                  void* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(file));
                  EXPECT_EQUAL(cuMemPoolImportFromShareableHandle(&out, descriptor, type, 0), CUDA_SUCCESS);
                  close(file);
              };
              EXPECT_EQUAL(cuMemPoolCreate(&a, &props), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPoolCreate(&b, &props), CUDA_SUCCESS);
              imported(a, imported_a);
              imported(b, imported_b);
              EXPECT_EQUAL(cuMemAlloc(&plain, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPoolExportPointer(&of_plain, plain), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&block, 4 * MiB, a, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(block, 3, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPoolExportPointer(&data, block), CUDA_SUCCESS);
              const size_t free = free_bytes();
              EXPECT_EQUAL(cuMemPoolImportPointer(&opened, a, &data), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemPoolImportPointer(&opened, imported_b, &data), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemPoolImportPointer(&opened, imported_a, &zeros), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(opened, CUdeviceptr{0});
              EXPECT_EQUAL(cuMemPoolImportPointer(&opened, imported_a, &data), CUDA_SUCCESS);
              EXPECT_EQUAL(value_at(opened + 2 * MiB), 3U);
              EXPECT_EQUAL(cuMemsetD32(opened, 4, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(value_at(block + 2 * MiB), 4U);
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(cuMemFree(opened), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              // The pool's maker still has it, and lends it again.
              EXPECT_EQUAL(value_at(block), 4U);
              EXPECT_EQUAL(cuMemPoolImportPointer(&opened, imported_a, &data), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(opened), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(block), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPoolImportPointer(&opened, imported_a, &data), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(free_bytes(), free + 4 * MiB);
          }) == "");
}
