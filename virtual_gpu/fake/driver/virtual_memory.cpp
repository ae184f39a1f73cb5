#include "virtual_gpu/fake/driver/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "virtual_gpu/fake/driver/array.h"
#include "virtual_gpu/fake/driver/sharing.h"
#include "virtual_gpu/fake/driver/state.h"

namespace cuslice::fake {
namespace {

using PhysicalTable = HandleTable<Physical, CUmemGenericAllocationHandle, HandleKind::Physical>;
constinit PhysicalTable physicals;

struct Reservation {
    std::size_t size = 0;
    void* range = nullptr;  // what mmap gave: the alignment cuts a part off
    std::size_t range_size = 0;
};
struct Mapping {
    std::size_t size = 0;
    CUmemGenericAllocationHandle handle = 0;
    std::map<int, CUmemAccess_flags> access;  // by ordinal
};

/// Both tables, and the lock that all functions here take.
struct Tables {
    std::shared_mutex lock;
    std::map<Address, Reservation> reservations;
    std::map<Address, Mapping> mappings;
};

Tables& tables() {
    static auto* one = new Tables;
    return *one;
}

/// The entry whose range [key, key + size) contains the address, or end.
template <typename Map>
typename Map::iterator around(Map& map, Address address) {
    auto above = map.upper_bound(address);
    if (above == map.begin()) return map.end();
    --above;
    return address - above->first < above->second.size ? above : map.end();
}

bool whole(std::size_t value) { return value % virtual_granularity == 0; }

/// Frees the memory when nobody has it any more; with the lock held.
void drop_if_unused(CUmemGenericAllocationHandle handle, Physical& physical) {
    if (physical.handles > 0 || physical.mappings > 0) return;
    Gpu& gpu = *physical.gpu;
    const Address at = physical.at;
    if (physical.file >= 0) close(physical.file);
    physicals.destroy(handle);
    const std::lock_guard hold(gpu.lock);
    const Block block = gpu.device.heap.at(at);
    if (block) gpu.free_block(gpu.device, block);
}

/// The mappings that exactly fill [address, address + size); with the lock held.
bool exact_mappings(Address address, std::size_t size, std::vector<Address>& found) {
    Tables& t = tables();
    for (std::size_t done = 0; done < size;) {
        const auto at = t.mappings.find(address + done);
        if (at == t.mappings.end() || at->second.size > size - done) return false;
        found.push_back(at->first);
        done += at->second.size;
    }
    return size > 0;
}

/// Lies behind the contents in an exportable piece's file, and says what it is.
struct Label {
    std::uint64_t magic = 0x5359485045524143;
    std::uint64_t id = 0, size = 0;
    unsigned char uuid[16] = {};
    CUmemAllocationProp prop{};
};

/// The label of an exported descriptor; false if it is another kind of file.
bool read_label(int file, Label& label) {
    struct stat info {};
    const auto size = static_cast<ssize_t>(sizeof label);
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= size) return false;
    const std::uint64_t magic = Label{}.magic;
    if (pread(file, &label, sizeof label, info.st_size - size) != size || label.magic != magic) return false;
    return label.size == static_cast<std::uint64_t>(info.st_size - size) && whole(label.size);
}

/// Gives a new block a file of its own for its contents; with the GPU's lock held.
bool move_to_file(Gpu& gpu, const Block& block, const Label& label, int& file) {
    file = memfd_create("cuslice-fake-memory", MFD_CLOEXEC);
    const auto size = static_cast<off_t>(label.size);
    const auto label_size = static_cast<ssize_t>(sizeof label);
    if (file >= 0 && ftruncate(file, size) == 0 && pwrite(file, &label, sizeof label, size) == label_size &&
        gpu.device.space.adopt(block.base, label.size, file, 0)) {
        block.record->adopted = true;
        return true;
    }
    if (file >= 0) close(file);
    return false;
}

}  // namespace

CUresult reserve_addresses(Address& out, std::size_t size, std::size_t alignment) {
    if (size == 0 || !whole(size) || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t align = std::max(alignment, virtual_granularity);
    if (size + align < size) return CUDA_ERROR_INVALID_VALUE;
    void* range = mmap(nullptr, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const Address base = (reinterpret_cast<Address>(range) + align - 1) / align * align;
    const std::lock_guard hold(tables().lock);
    tables().reservations[base] = {size, range, size + align};
    out = base;
    return CUDA_SUCCESS;
}

CUresult free_addresses(Address address, std::size_t size) {
    const std::lock_guard hold(tables().lock);
    const auto found = tables().reservations.find(address);
    if (found == tables().reservations.end() || found->second.size != size) return CUDA_ERROR_INVALID_VALUE;
    const auto inside = tables().mappings.lower_bound(address);
    if (inside != tables().mappings.end() && inside->first - address < size) return CUDA_ERROR_INVALID_VALUE;
    munmap(found->second.range, found->second.range_size);
    tables().reservations.erase(found);
    return CUDA_SUCCESS;
}

CUresult create_physical(CUmemGenericAllocationHandle& out, std::size_t size, const CUmemAllocationProp& prop) {
    if (size == 0 || !whole(size) || prop.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    Gpu* gpu = driver().gpu(prop.location.id);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    {
        const std::lock_guard hold(driver().lock);
        if (const CUresult bad = gpu->open(); bad != CUDA_SUCCESS) return bad;
    }
    Address at = 0;
    // Nobody's: no context's end frees it.
    if (const CUresult bad = gpu->allocate(gpu->device, size, BlockKind::Physical, 0, at); bad != CUDA_SUCCESS)
        return bad;
    Label label;
    int file = -1;
    if ((prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
        label.id = new_sharing_id();
        label.size = size;
        label.prop = prop;
        std::memcpy(label.uuid, gpu->spec.uuid.data(), sizeof label.uuid);
        const std::lock_guard hold(gpu->lock);
        const Block block = gpu->device.heap.at(at);
        if (!move_to_file(*gpu, block, label, file)) {
            gpu->free_block(gpu->device, block);
            return CUDA_ERROR_OPERATING_SYSTEM;
        }
    }
    const auto [handle, physical] = physicals.create();
    physical->gpu = gpu;
    physical->at = at;
    physical->size = size;
    physical->prop = prop;
    physical->file = file;
    physical->id = label.id;
    out = handle;
    return CUDA_SUCCESS;
}

CUresult export_physical(CUmemGenericAllocationHandle handle, int& file) {
    const std::lock_guard hold(tables().lock);
    const Physical* physical = physicals.find(handle);
    if (physical == nullptr || physical->handles == 0 || physical->file < 0) return CUDA_ERROR_INVALID_VALUE;
    Gpu& gpu = *physical->gpu;
    {
        const std::lock_guard hold_gpu(gpu.lock);
        const Block block = gpu.device.heap.at(physical->at);
        if (!block.record->shared) {
            if (!gpu.books.share(physical->id, physical->size)) return CUDA_ERROR_OUT_OF_MEMORY;
            gpu.shared[block.base].id = physical->id;
            block.record->shared = true;
        }
    }
    file = fcntl(physical->file, F_DUPFD_CLOEXEC, 0);
    return file >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult import_physical(CUmemGenericAllocationHandle& out, int file) {
    Label label;
    if (!read_label(file, label)) return CUDA_ERROR_INVALID_VALUE;
    Gpu* gpu = gpu_with_uuid(label.uuid);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    {
        const std::lock_guard hold(driver().lock);
        if (const CUresult bad = gpu->open(); bad != CUDA_SUCCESS) return bad;
    }
    const std::lock_guard hold(tables().lock);
    bool known = false;
    physicals.each([&](CUmemGenericAllocationHandle handle, Physical& physical) {
        if (known || physical.id != label.id) return;
        physical.handles++;
        out = handle;
        known = true;
    });
    if (known) return CUDA_SUCCESS;
    const std::lock_guard hold_gpu(gpu->lock);
    if (!gpu->books.hold_or_pay(label.id, label.size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const Block block = gpu->device.heap.allocate(label.size, BlockKind::Imported, 0);
    const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (!block || own < 0 || !gpu->device.space.adopt(block.base, label.size, own, 0)) {
        if (block) gpu->device.heap.free(block);
        if (own >= 0) close(own);
        gpu->books.drop(label.id, true);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block.record->adopted = block.record->shared = true;
    gpu->shared[block.base].id = label.id;
    const auto [handle, physical] = physicals.create();
    physical->gpu = gpu;
    physical->at = block.base;
    physical->size = label.size;
    physical->prop = label.prop;
    physical->prop.location.id = gpu->ordinal;
    physical->file = own;
    physical->id = label.id;
    out = handle;
    return CUDA_SUCCESS;
}

CUresult release_physical(CUmemGenericAllocationHandle handle) {
    const std::lock_guard hold(tables().lock);
    Physical* physical = physicals.find(handle);
    if (physical == nullptr || physical->handles == 0) return CUDA_ERROR_INVALID_VALUE;
    physical->handles--;
    drop_if_unused(handle, *physical);
    return CUDA_SUCCESS;
}

CUresult map_physical(Address address, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle) {
    const std::lock_guard hold(tables().lock);
    Tables& t = tables();
    Physical* physical = physicals.find(handle);
    const auto reservation = around(t.reservations, address);
    if (physical == nullptr || physical->handles == 0 || offset != 0 || size != physical->size || !whole(address) ||
        reservation == t.reservations.end() || size > reservation->second.size - (address - reservation->first)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto next = t.mappings.lower_bound(address);
    if (around(t.mappings, address) != t.mappings.end() || (next != t.mappings.end() && next->first - address < size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    t.mappings[address] = {size, handle, {}};
    physical->mappings++;
    return CUDA_SUCCESS;
}

CUresult unmap_physical(Address address, std::size_t size) {
    const std::lock_guard hold(tables().lock);
    std::vector<Address> found;
    if (!exact_mappings(address, size, found)) return CUDA_ERROR_INVALID_VALUE;
    for (const Address at : found) {
        const CUmemGenericAllocationHandle handle = tables().mappings[at].handle;
        tables().mappings.erase(at);
        Physical* physical = physicals.find(handle);
        physical->mappings--;
        drop_if_unused(handle, *physical);
    }
    return CUDA_SUCCESS;
}

CUresult set_mapped_access(Address address, std::size_t size, const CUmemAccessDesc* access, std::size_t count) {
    for (std::size_t i = 0; i < count; i++) {
        const bool flags = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                           access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                           access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (!flags || access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
        if (driver().gpu(access[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    }
    const std::lock_guard hold(tables().lock);
    std::vector<Address> found;
    if (!exact_mappings(address, size, found)) return CUDA_ERROR_INVALID_VALUE;
    for (const Address at : found) {
        for (std::size_t i = 0; i < count; i++) tables().mappings[at].access[access[i].location.id] = access[i].flags;
    }
    return CUDA_SUCCESS;
}

CUresult get_mapped_access(Address address, const CUmemLocation& location, unsigned long long& flags) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || driver().gpu(location.id) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const std::shared_lock hold(tables().lock);
    const auto found = around(tables().mappings, address);
    if (found == tables().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto entry = found->second.access.find(location.id);
    flags = entry == found->second.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : entry->second;
    return CUDA_SUCCESS;
}

CUresult retain_physical(Address address, CUmemGenericAllocationHandle& out) {
    const std::lock_guard hold(tables().lock);
    const auto found = around(tables().mappings, address);
    if (found == tables().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    physicals.find(found->second.handle)->handles++;
    out = found->second.handle;
    return CUDA_SUCCESS;
}

CUresult physical_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp& prop) {
    const std::shared_lock hold(tables().lock);
    const Physical* physical = physicals.find(handle);
    if (physical == nullptr || physical->handles == 0) return CUDA_ERROR_INVALID_VALUE;
    prop = physical->prop;
    return CUDA_SUCCESS;
}

std::size_t physical_size(CUmemGenericAllocationHandle handle) {
    const std::shared_lock hold(tables().lock);
    const Physical* physical = physicals.find(handle);
    return physical == nullptr ? 0 : physical->size;
}

CUresult bind_physical(CUmemGenericAllocationHandle handle, const Gpu& gpu, std::size_t offset, std::size_t tiles) {
    const std::lock_guard hold(tables().lock);
    Physical* physical = physicals.find(handle);
    if (physical == nullptr || physical->handles == 0 || physical->gpu != &gpu) return CUDA_ERROR_INVALID_VALUE;
    if ((physical->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0) return CUDA_ERROR_INVALID_VALUE;
    if (offset % tile_bytes != 0 || offset > physical->size || tiles > (physical->size - offset) / tile_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    physical->mappings += static_cast<unsigned>(tiles);
    return CUDA_SUCCESS;
}

void unbind_physical(CUmemGenericAllocationHandle handle) {
    const std::lock_guard hold(tables().lock);
    Physical* physical = physicals.find(handle);
    physical->mappings--;
    drop_if_unused(handle, *physical);
}

bool in_reserved_addresses(Address address) {
    const std::shared_lock hold(tables().lock);
    return around(tables().reservations, address) != tables().reservations.end();
}

CUresult resolve_mapped(Address address, std::size_t size, Access access, Pieces& pieces) {
    const std::shared_lock hold(tables().lock);
    while (size > 0) {
        const auto found = around(tables().mappings, address);
        if (found == tables().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
        bool allowed = false;
        for (const auto& [ordinal, flags] : found->second.access) {
            allowed = allowed || flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
                      (access == Access::Read && flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
        }
        if (!allowed) return CUDA_ERROR_INVALID_VALUE;
        Physical& physical = *physicals.find(found->second.handle);
        const std::size_t offset = address - found->first, part = std::min(size, found->second.size - offset);
        if (access == Access::Write) {
            const std::lock_guard hold_gpu(physical.gpu->lock);
            physical.gpu->device.heap.at(physical.at).record->touched = true;
        }
        pieces.push_back({&physical.gpu->device.space, physical.at + offset, part, physical.gpu});
        address += part;
        size -= part;
    }
    return CUDA_SUCCESS;
}

bool find_mapping(Address address, Address& base, std::size_t& size, Gpu*& gpu) {
    const std::shared_lock hold(tables().lock);
    const auto found = around(tables().mappings, address);
    if (found == tables().mappings.end()) return false;
    base = found->first;
    size = found->second.size;
    gpu = physicals.find(found->second.handle)->gpu;
    return true;
}

}  // namespace cuslice::fake
