#pragma once
// From an address to bytes: every pointer from the program goes through here before anything is touched.

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "fake/driver/context.h"

namespace cuslice::fake {

/// Where an address lies, and what was known of its block when it was looked up: a copy, as other threads may free the
/// block or write to its record at any time. Who changes the record looks it up again, with the GPU's lock held.
struct Found {
    Gpu* gpu = nullptr;
    Region* region = nullptr;
    Address base = 0;
    BlockRecord record;
    explicit operator bool() const { return record.asked != 0; }
};

/// The live block on any GPU that contains the address. Thread-safe.
Found find_block(Address address);

/// True if the address lies in a range that belongs to a GPU and that the host may not touch, allocated or not.
bool is_device_address(Address address);

/// Some bytes that can be reached at once: in a GPU's memory, or at a host address.
struct Piece {
    MemorySpace* space = nullptr;  // null: host memory
    Address at = 0;
    std::size_t size = 0;
    Gpu* gpu = nullptr;
    std::shared_ptr<const std::atomic<bool>> mapped{};  // of mapped memory: false once that has been unmapped
};
using Pieces = std::vector<Piece>;

enum class Access { Read, Write };

/// The GPU that reaches for memory in the calling thread: the current context's. -1: there is none.
int accessing_gpu();

/// Bytes [address, address + size) as device code could reach them: in one live block, in mapped virtual memory, or in
/// host memory that the driver knows. CUDA_ERROR_INVALID_VALUE if any of them is not. `from_gpu` is the one that
/// reaches for them: mapped memory is open to those alone that cuMemSetAccess names, whatever peers are enabled.
CUresult resolve_device(Address address, std::size_t size, Access access, Pieces& pieces,
                        int from_gpu = accessing_gpu());
/// The same for a host pointer: any address that isn't a GPU's. Pageable memory can't be checked further.
CUresult resolve_host(const void* pointer, std::size_t size, Pieces& pieces);
/// The same for a unified address: a known range is what it is, anything else host memory.
CUresult resolve_any(Address address, std::size_t size, Access access, Pieces& pieces, int from_gpu = accessing_gpu());

/// Copies between resolved ranges of the same total size. CUDA_ERROR_ILLEGAL_ADDRESS if some of it has been unmapped
/// since it was resolved, CUDA_ERROR_OUT_OF_MEMORY if the host has no room for the contents: nothing is copied then.
CUresult copy_pieces(const Pieces& to, const Pieces& from);
/// Repeats a pattern of 4 bytes over resolved ranges; the same errors.
CUresult fill_pieces(const Pieces& pieces, std::uint32_t pattern);

}  // namespace cuslice::fake
