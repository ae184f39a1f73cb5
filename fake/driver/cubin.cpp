// SPDX-License-Identifier: Apache-2.0
// Kernels and variables of a cubin: an ELF file for the machine "CUDA".

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "fake/bytes.h"
#include "fake/driver/image.h"
#include "fake/driver/readable.h"
#include "virtual_gpu/driver/cubin.h"

namespace cuslice::fake {
namespace {

constexpr uint64_t kLargestImage = 1ULL << 32;

// Attributes of .nv.info that matter here. Format 4 has a payload of so many bytes, the others carry 16 bits inline.
constexpr unsigned char kInfoSized = 4, kInfoMaxThreads = 0x05, kInfoFrameSize = 0x11, kInfoMinStack = 0x12,
                        kInfoParameter = 0x17, kInfoRegisters = 0x2f;

constexpr uint32_t kCudaInfo = 1000;  // type of the note .note.nv.cuinfo

// From this capability on a kernel's section of shared memory begins with what the hardware keeps of it.
constexpr int kReservesShared = 90;

/// Nothing of it is read before is_whole() has seen that all that it names lies in it.
class Cubin {
  public:
    Cubin(const unsigned char* data, uint64_t size)
        : data_(data), size_(size), header_(size < sizeof(Elf64_Ehdr) ? Elf64_Ehdr{} : value_at<Elf64_Ehdr>(data)) {}

    bool is_one() const { return cuslice::is_cubin(header_); }

    bool read(Image& image) {
        if (!is_one() || !is_whole())
            return false;
        // The capability moved from the lowest byte of the flags to the second in version 8 of the ABI.
        const unsigned shift = header_.e_ident[EI_ABIVERSION] >= 8 ? 8 : 0;
        image.capability = static_cast<int>(header_.e_flags >> shift & 0xff);
        image.ptx_capability = virtual_capability();
        for (unsigned i = 0; i < header_.e_shnum; i++) {
            if (section(i).sh_type == SHT_SYMTAB)
                read_symbols(section(i), image);
        }
        read_resources(image);
        for (KernelInfo& kernel : image.kernels)
            read_kernel(kernel, image.capability);
        return true;
    }

  private:
    bool has(uint64_t offset, uint64_t size) const { return offset <= size_ && size <= size_ - offset; }
    /// Names that end within their table.
    bool is_strings(const Elf64_Shdr& table) const {
        return table.sh_type == SHT_STRTAB && table.sh_size != 0 && data_[table.sh_offset + table.sh_size - 1] == '\0';
    }
    bool is_whole() const {
        const uint64_t sections = uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr);
        const uint64_t segments = uint64_t{header_.e_phnum} * header_.e_phentsize;
        if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shstrndx >= header_.e_shnum)
            return false;
        if (!has(header_.e_shoff, sections) || (segments != 0 && !has(header_.e_phoff, segments)))
            return false;
        for (unsigned i = 0; i < header_.e_shnum; i++) {
            const Elf64_Shdr one = section(i);
            const bool takes_room = one.sh_type != SHT_NOBITS && one.sh_type != SHT_NULL;
            if (takes_room && !has(one.sh_offset, one.sh_size))
                return false;
        }
        if (section(0).sh_type != SHT_NULL || !is_strings(section(header_.e_shstrndx)))
            return false;
        for (unsigned i = 0; i < header_.e_shnum; i++) {
            const Elf64_Shdr one = section(i);
            if (one.sh_name >= section(header_.e_shstrndx).sh_size)
                return false;
            if (one.sh_type == SHT_SYMTAB && !are_symbols(one))
                return false;
        }
        return true;
    }
    bool are_symbols(const Elf64_Shdr& table) const {
        if (table.sh_link >= header_.e_shnum || table.sh_size % sizeof(Elf64_Sym) != 0)
            return false;
        const Elf64_Shdr strings = section(table.sh_link);
        if (!is_strings(strings))
            return false;
        for (uint64_t offset = 0; offset < table.sh_size; offset += sizeof(Elf64_Sym)) {
            if (value_at<Elf64_Sym>(data_ + table.sh_offset + offset).st_name >= strings.sh_size)
                return false;
        }
        return true;
    }

    Elf64_Shdr section(unsigned index) const {
        return value_at<Elf64_Shdr>(data_ + header_.e_shoff + index * sizeof(Elf64_Shdr));
    }
    const char* name_of(const Elf64_Shdr& section_header) const {
        return reinterpret_cast<const char*>(data_ + section(header_.e_shstrndx).sh_offset + section_header.sh_name);
    }
    /// The section of that name; false if there is none.
    bool find(const std::string& name, Elf64_Shdr& found) const {
        for (unsigned i = 0; i < header_.e_shnum; i++) {
            found = section(i);
            if (name == name_of(found))
                return true;
        }
        return false;
    }

    /// The capability of the PTX that it was compiled from: in a note of the ABI's version 8, before that in the flags;
    /// 0 if neither.
    int virtual_capability() const {
        Elf64_Shdr note;
        struct {
            uint32_t name_size, size, type;
            char name[12];
            uint16_t version, capability;
        } info;
        if (header_.e_ident[EI_ABIVERSION] < 8)
            return static_cast<int>(header_.e_flags >> 16 & 0xff);
        if (!find(".note.nv.cuinfo", note) || note.sh_type != SHT_NOTE || note.sh_size < sizeof info)
            return 0;
        std::memcpy(&info, data_ + note.sh_offset, sizeof info);
        const bool known = info.name_size == sizeof info.name && info.size >= 4 && info.type == kCudaInfo;
        return known ? info.capability : 0;
    }

    void read_symbols(const Elf64_Shdr& table, Image& image) {
        const Elf64_Shdr strings = section(table.sh_link);
        for (uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= table.sh_size; offset += sizeof(Elf64_Sym)) {
            const auto symbol = value_at<Elf64_Sym>(data_ + table.sh_offset + offset);
            const char* name = reinterpret_cast<const char*>(data_ + strings.sh_offset + symbol.st_name);
            if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= header_.e_shnum)
                continue;
            const unsigned type = ELF64_ST_TYPE(symbol.st_info);
            if (type == STT_FUNC && (symbol.st_other & kKernelSymbol) != 0) {
                kernel_of_symbol_[static_cast<uint32_t>(offset / sizeof(Elf64_Sym))] = image.kernels.size();
                KernelInfo kernel;
                kernel.name = name;
                // Cubins of old tools count registers here alone: in the top byte of the code section's info.
                if (const auto count = section(symbol.st_shndx).sh_info >> 24; count != 0)
                    kernel.registers = static_cast<int>(count);
                image.kernels.push_back(kernel);
            } else if (type == STT_OBJECT) {
                read_variable(name, symbol, image);
            }
        }
    }

    void read_variable(const char* name, const Elf64_Sym& symbol, Image& image) {
        const Elf64_Shdr home = section(symbol.st_shndx);
        const std::string section_name = name_of(home);
        const bool constant = section_name.rfind(".nv.constant3", 0) == 0;
        if (section_name.rfind(kGlobals, 0) != 0 && !constant)
            return;
        VariableInfo variable;
        variable.name = name;
        variable.size = symbol.st_size;
        variable.managed = (symbol.st_other & kManagedSymbol) != 0;
        const bool inside = symbol.st_value <= home.sh_size && symbol.st_size <= home.sh_size - symbol.st_value;
        if (home.sh_type != SHT_NOBITS && home.sh_type != SHT_NULL && inside) {
            const unsigned char* start = data_ + home.sh_offset + symbol.st_value;
            variable.contents.assign(start, start + symbol.st_size);
        }
        image.variables.push_back(std::move(variable));
    }

    /// Calls f(attribute, payload, size) for each record of a section of attributes that has a payload.
    template <typename F>
    void each_record(const Elf64_Shdr& info_section, F&& f) const {
        if (info_section.sh_type == SHT_NOBITS || info_section.sh_type == SHT_NULL)
            return;
        const unsigned char* info = data_ + info_section.sh_offset;
        for (uint64_t offset = 0; offset + 4 <= info_section.sh_size;) {
            const unsigned size = info[offset] == kInfoSized ? value_at<uint16_t>(info + offset + 2) : 0U;
            if (offset + 4 + size > info_section.sh_size)
                break;
            f(info[offset + 1], info + offset + 4, size);
            offset += 4 + size;
        }
    }

    /// Reads the registers and local memory of every kernel, by its symbol, and the size of the constants: one bank
    /// for all kernels of the image.
    void read_resources(Image& image) const {
        Elf64_Shdr found{};
        if (find(".nv.constant3", found)) {
            for (KernelInfo& kernel : image.kernels)
                kernel.const_bytes = static_cast<int>(found.sh_size);
        }
        if (!find(".nv.info", found))
            return;
        each_record(found, [&](unsigned attribute, const unsigned char* payload, unsigned size) {
            if (size < 8)
                return;
            const auto kernel = kernel_of_symbol_.find(value_at<uint32_t>(payload));
            if (kernel == kernel_of_symbol_.end())
                return;
            const auto value = value_at<int32_t>(payload + 4);
            KernelInfo& info = image.kernels[kernel->second];
            if (attribute == kInfoRegisters)
                info.registers = value;
            // The stack with those of the functions that it calls; not known (-1) if they recur.
            if (attribute == kInfoFrameSize || attribute == kInfoMinStack)
                info.local_bytes = std::max(info.local_bytes, value);
        });
    }

    void read_kernel(KernelInfo& kernel, int capability) const {
        Elf64_Shdr found{};
        if (find(".nv.shared." + kernel.name, found)) {
            kernel.shared_bytes = static_cast<int>(found.sh_size);
            if (capability >= kReservesShared)
                kernel.shared_bytes -= std::min(kernel.shared_bytes, kReservedShared);
        }
        if (!find(".nv.info." + kernel.name, found)) {
            kernel.parameters_known = false;
            return;
        }
        std::map<unsigned, KernelParameter> parameters;  // the records are in no order
        each_record(found, [&](unsigned attribute, const unsigned char* payload, unsigned size) {
            if (size < 12)
                return;
            if (attribute == kInfoParameter) {
                // index, ordinal, offset; the size is in the top 14 bits of the last word
                const auto ordinal = value_at<uint16_t>(payload + 4);
                parameters[ordinal] = {value_at<uint16_t>(payload + 6), value_at<uint32_t>(payload + 8) >> 18};
            } else if (attribute == kInfoMaxThreads) {
                kernel.max_threads = static_cast<int>(std::min<uint64_t>(
                    kMaxThreadsPerBlock, uint64_t{value_at<uint32_t>(payload)} * value_at<uint32_t>(payload + 4) *
                                             value_at<uint32_t>(payload + 8)));
            }
        });
        for (const auto& [ordinal, parameter] : parameters)
            kernel.parameters.push_back(parameter);
    }

    std::map<uint32_t, size_t> kernel_of_symbol_;
    const unsigned char* data_;
    uint64_t size_;
    Elf64_Ehdr header_;
};

}  // namespace

bool read_cubin(const unsigned char* data, uint64_t size, Image& image) { return Cubin(data, size).read(image); }

bool is_cubin(const unsigned char* data, uint64_t size) { return Cubin(data, size).is_one(); }

uint64_t size_of_cubin(const unsigned char* data) {
    if (!is_readable(data, sizeof(Elf64_Ehdr)))
        return 0;
    const auto header = value_at<Elf64_Ehdr>(data);
    uint64_t size = sizeof header;
    const auto reach = [&](uint64_t offset, uint64_t bytes) {
        if (offset > kLargestImage || bytes > kLargestImage)
            return false;
        size = std::max(size, offset + bytes);
        return true;
    };
    const uint64_t sections = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
    if (!reach(header.e_shoff, sections) || !reach(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize) ||
        !is_readable(data + header.e_shoff, sections))
        return 0;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        const auto section = value_at<Elf64_Shdr>(data + header.e_shoff + i * sizeof(Elf64_Shdr));
        const bool takes_room = section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
        if (takes_room && !reach(section.sh_offset, section.sh_size))
            return 0;
    }
    return is_readable(data, size) ? size : 0;
}

}  // namespace cuslice::fake
