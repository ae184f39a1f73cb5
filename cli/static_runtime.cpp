#include "cli/static_runtime.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

namespace cuslice::cli {
namespace {

// A file, mapped to be read; empty if that can't be.
class Mapped {
  public:
    explicit Mapped(const std::string& path) {
        struct stat status {};
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) return;
        if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
            size_ = static_cast<std::size_t>(status.st_size);
            data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
        }
        ::close(descriptor);
    }
    ~Mapped() {
        if (data_ != MAP_FAILED) ::munmap(data_, size_);
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

    // So many things of a kind; false if the file doesn't reach so far.
    template <typename Item>
    bool read(std::uint64_t offset, std::uint64_t index, Item* item) const {
        if (data_ == MAP_FAILED || index > size_ / sizeof(Item) || offset > size_ ||
            size_ - offset < (index + 1) * sizeof(Item))
            return false;
        std::memcpy(item, static_cast<const char*>(data_) + offset + index * sizeof(Item), sizeof(Item));
        return true;
    }
    // A text that ends with a NUL; empty if it has no end.
    std::string_view text(std::uint64_t offset) const {
        if (data_ == MAP_FAILED || offset >= size_) return {};
        const char* begin = static_cast<const char*>(data_) + offset;
        const void* end = std::memchr(begin, '\0', size_ - offset);
        return end ? std::string_view(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin))
                   : std::string_view();
    }

  private:
    void* data_ = MAP_FAILED;
    std::size_t size_ = 0;
};

bool needs_shared_runtime(const Mapped& file, const Elf64_Shdr& dynamic, const Elf64_Shdr& strings) {
    Elf64_Dyn entry;
    for (std::uint64_t i = 0; i < dynamic.sh_size / sizeof entry && file.read(dynamic.sh_offset, i, &entry); ++i)
        if (entry.d_tag == DT_NEEDED && file.text(strings.sh_offset + entry.d_un.d_val).starts_with("libcudart.so"))
            return true;
    return false;
}

}  // namespace

bool carries_static_runtime(const std::string& path) {
    const Mapped file(path);
    Elf64_Ehdr header;
    if (!file.read(0, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    Elf64_Shdr names, section, strings;
    if (!file.read(header.e_shoff, header.e_shstrndx, &names)) return false;
    bool has_device_code = false, shared = false;
    for (std::uint64_t i = 0; i < header.e_shnum && file.read(header.e_shoff, i, &section); ++i) {
        has_device_code = has_device_code || file.text(names.sh_offset + section.sh_name) == ".nv_fatbin";
        if (section.sh_type == SHT_DYNAMIC && file.read(header.e_shoff, section.sh_link, &strings))
            shared = needs_shared_runtime(file, section, strings);
    }
    return has_device_code && !shared;
}

}  // namespace cuslice::cli
