// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/loader_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace cuslice {

namespace {

constexpr char kMagic[] = "glibc-ld.so.cache1.1";  // its terminating zero is not in the file
constexpr char kOldMagic[] = "ld.so-1.7.0";        // an older table may stand before the new one
// FLAG_X8664_LIB64 or FLAG_AARCH64_LIB64, and FLAG_ELF_LIBC6 (glibc, sysdeps/generic/ldconfig.h).
#if defined(__x86_64__)
constexpr std::int32_t kThisMachine = 0x0303;
#elif defined(__aarch64__)
constexpr std::int32_t kThisMachine = 0x0a03;
#endif

struct Header {
    char magic[20];
    std::uint32_t count;
    std::uint32_t strings_size;
    std::uint8_t flags;
    std::uint8_t padding[3];
    std::uint32_t extension_offset;
    std::uint32_t unused[3];
};
struct Entry {
    std::int32_t flags;
    std::uint32_t key, value;  // offsets of zero-terminated strings from the header
    std::uint32_t os_version;
    std::uint64_t hwcap;
};
struct OldEntry {
    std::int32_t flags;
    std::uint32_t key, value;
};
static_assert(sizeof(Header) == 48 && sizeof(Entry) == 24);

class MappedFile {
  public:
    explicit MappedFile(const char* path) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        const off_t length = lseek(fd, 0, SEEK_END);  // not fstat: its symbol is newer than the C libraries we run on
        if (length > 0) {
            void* memory = mmap(nullptr, static_cast<std::size_t>(length), PROT_READ, MAP_PRIVATE, fd, 0);
            if (memory != MAP_FAILED) {
                data = static_cast<const char*>(memory);
                size = static_cast<std::size_t>(length);
            }
        }
        close(fd);
    }
    ~MappedFile() {
        if (data) munmap(const_cast<char*>(data), size);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const char* data = nullptr;
    std::size_t size = 0;
};

// The zero-terminated string at this offset, or null if it is not wholly inside.
const char* string_at(const char* data, std::size_t size, std::uint32_t offset) {
    return offset < size && std::memchr(data + offset, 0, size - offset) ? data + offset : nullptr;
}

}  // namespace

bool for_each_in_loader_cache(const char* cache_path, const char* name, bool (*visit)(const char*, void*),
                              void* argument) {
    const MappedFile file(cache_path);
    const char* data = file.data;
    std::size_t size = file.size;
    if (data && size >= 16 && std::memcmp(data, kOldMagic, sizeof(kOldMagic) - 1) == 0) {
        std::uint32_t old_count;
        std::memcpy(&old_count, data + 12, sizeof(old_count));
        const std::size_t skip = (16 + std::size_t{old_count} * sizeof(OldEntry) + 7) / 8 * 8;
        if (skip >= size) return false;
        data += skip;
        size -= skip;
    }
    if (!data || size < sizeof(Header) || std::memcmp(data, kMagic, sizeof(kMagic) - 1) != 0) return false;
    Header header;
    std::memcpy(&header, data, sizeof(header));
    if (header.count > (size - sizeof(Header)) / sizeof(Entry)) return false;
    for (std::uint32_t i = 0; i < header.count; i++) {
        Entry entry;
        std::memcpy(&entry, data + sizeof(Header) + i * sizeof(Entry), sizeof(entry));
        if (entry.flags != kThisMachine) continue;
        const char* key = string_at(data, size, entry.key);
        const char* value = string_at(data, size, entry.value);
        if (key && value && std::strcmp(key, name) == 0 && visit(value, argument)) return true;
    }
    return false;
}

}  // namespace cuslice
