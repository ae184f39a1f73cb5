#pragma once
// Virtual memory management: reserved addresses, physical memory without an address, and mappings of one on the other.
// Physical memory is charged until its last handle and its last mapping are gone.

#include "fake/driver/context.h"
#include "fake/driver/resolve.h"

namespace cuslice::fake {

/// Granularity of sizes, offsets and addresses.
constexpr std::size_t virtual_granularity = page_bytes;

struct Physical {
    Gpu* gpu = nullptr;
    Address at = 0;  // where its contents lie in the GPU's ordinary memory
    std::size_t size = 0;
    CUmemAllocationProp prop{};
    unsigned handles = 1;  // references that the program holds
    unsigned mappings = 0;
    int file = -1;         // of exportable memory: what its contents are in, and what other processes are given
    std::uint64_t id = 0;  // the piece in the books, once it has been exported or if it was imported
};

CUresult reserve_addresses(Address& out, std::size_t size, std::size_t alignment);
CUresult free_addresses(Address address, std::size_t size);
CUresult create_physical(CUmemGenericAllocationHandle& out, std::size_t size, const CUmemAllocationProp& prop);
/// A descriptor by which another process can import the memory; it keeps the contents while nobody has imported them.
CUresult export_physical(CUmemGenericAllocationHandle handle, int& file);
/// What such a descriptor stands for; in the process that has the memory already one more reference to it.
CUresult import_physical(CUmemGenericAllocationHandle& out, int file);
CUresult release_physical(CUmemGenericAllocationHandle handle);
CUresult map_physical(Address address, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle);
CUresult unmap_physical(Address address, std::size_t size);
CUresult set_mapped_access(Address address, std::size_t size, const CUmemAccessDesc* access, std::size_t count);
CUresult get_mapped_access(Address address, const CUmemLocation& location, unsigned long long& flags);
/// One more reference to the physical memory under an address.
CUresult retain_physical(Address address, CUmemGenericAllocationHandle& out);
CUresult physical_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp& prop);

/// 0 if the handle is none.
std::size_t physical_size(CUmemGenericAllocationHandle handle);

/// Binds tiles of a tile pool to an array of the GPU, as so many mappings; and gives one of them up.
CUresult bind_physical(CUmemGenericAllocationHandle handle, const Gpu& gpu, std::size_t offset, std::size_t tiles);
void unbind_physical(CUmemGenericAllocationHandle handle);

/// True if the address lies in reserved addresses, mapped or not.
bool in_reserved_addresses(Address address);
/// The bytes under mapped addresses that this GPU may access as asked.
CUresult resolve_mapped(Address address, std::size_t size, Access access, Pieces& pieces, int from_gpu);
/// The mapping around an address: its base, size and GPU; false if nothing is mapped there.
bool find_mapping(Address address, Address& base, std::size_t& size, Gpu*& gpu);

}  // namespace cuslice::fake
