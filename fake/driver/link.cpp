// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/link.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "fake/bytes.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/ptx_text.h"
#include "virtual_gpu/driver/fat_binary.h"

namespace cuslice::fake {

namespace {

const unsigned char* bytes_of(const char* data) { return reinterpret_cast<const unsigned char*>(data); }

/// The largest power of two that divides an offset, as parameters are aligned to it at most.
size_t alignment_at(size_t offset) {
    constexpr size_t kMost = 16;
    return offset == 0 ? kMost : std::min(kMost, offset & ~(offset - 1));
}

std::string declare(const VariableInfo& variable) {
    std::string text = ".visible .global .align 16 .b8 " + variable.name + "[" + std::to_string(variable.size) + "]";
    if (variable.contents.empty())
        return text + ";\n";
    text += " = {";
    for (size_t i = 0; i < variable.contents.size(); i++)
        text += (i > 0 ? ", " : "") + std::to_string(variable.contents[i]);
    return text + "};\n";
}

std::string declare(const KernelInfo& kernel) {
    std::string text = ".visible .entry " + kernel.name;
    if (kernel.parameters_known) {
        text += "(";
        for (size_t i = 0; i < kernel.parameters.size(); i++) {
            const auto [offset, size] = kernel.parameters[i];
            text += (i > 0 ? ", " : "") + std::string(".param .align ") + std::to_string(alignment_at(offset)) +
                    " .b8 " + kernel.name + "_param_" + std::to_string(i) + "[" + std::to_string(size) + "]";
        }
        text += ")";
    }
    if (kernel.max_threads != kMaxThreadsPerBlock)
        text += " .maxntid " + std::to_string(kernel.max_threads) + ", 1, 1";
    text += " {\n";
    if (kernel.shared_bytes > 0)
        text += ".shared .align 4 .b8 " + kernel.name + "_shared[" + std::to_string(kernel.shared_bytes) + "];\n";
    if (kernel.local_bytes > 0)
        text += ".local .align 4 .b8 " + kernel.name + "_local[" + std::to_string(kernel.local_bytes) + "];\n";
    return text + "ret;\n}\n";
}

/// Device code in an object file of the host's: where nvcc puts whole code, and code that is to be linked.
bool has_device_code(std::string_view section) { return section == ".nv_fatbin" || section == "__nv_relfatbin"; }

/// Calls f(bytes, size) for every section of device code; false for what is no sound object.
template <typename F>
bool each_device_section(const unsigned char* data, size_t size, F f) {
    if (size < sizeof(Elf64_Ehdr) || std::memcmp(data, ELFMAG, SELFMAG) != 0 || data[EI_CLASS] != ELFCLASS64)
        return false;
    const auto header = value_at<Elf64_Ehdr>(data);
    const auto inside = [size](uint64_t offset, uint64_t bytes) { return offset <= size && bytes <= size - offset; };
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
        !inside(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
        return false;
    const auto section = [&](unsigned index) {
        return value_at<Elf64_Shdr>(data + header.e_shoff + index * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr names = section(header.e_shstrndx);
    if (!inside(names.sh_offset, names.sh_size))
        return false;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        const Elf64_Shdr here = section(i);
        if (here.sh_name >= names.sh_size || here.sh_type != SHT_PROGBITS)
            continue;
        const auto* const name = reinterpret_cast<const char*>(data + names.sh_offset + here.sh_name);
        if (!has_device_code({name, strnlen(name, names.sh_size - here.sh_name)}))
            continue;
        if (!inside(here.sh_offset, here.sh_size) || !f(data + here.sh_offset, here.sh_size))
            return false;
    }
    return true;
}

}  // namespace

CUresult Linked::add(CUjitInputType type, const char* data, size_t size, std::string& fault) {
    constexpr std::string_view kArchive = "!<arch>\n";
    switch (type) {
        case CU_JIT_INPUT_PTX:
            return add_text(data, size, fault);
        case CU_JIT_INPUT_CUBIN:
            if (!is_cubin(bytes_of(data), size))
                return CUDA_ERROR_INVALID_IMAGE;
            CUSLICE_TRY(add_image(data, size));
            lone_cubin_.assign(data, size);
            return CUDA_SUCCESS;
        case CU_JIT_INPUT_FATBINARY:
            return add_image(data, size);
        case CU_JIT_INPUT_OBJECT:
            return add_object(data, size);
        case CU_JIT_INPUT_LIBRARY:
            // A linker takes functions of a library that others call: nothing that has a name for the host.
            return std::string_view(data, size).starts_with(kArchive) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
        default:
            CUSLICE_UNSUPPORTED("linking intermediate code (NVVM, LTO)");
    }
}

CUresult Linked::add_text(const char* data, size_t size, std::string& fault) {
    Image image;
    while (size > 0 && data[size - 1] == '\0')
        size--;
    const CUresult read = compile_ptx(data, size, image);
    fault = image.fault;
    if (read != CUDA_SUCCESS)
        return read;
    const std::string_view text(data, size);
    texts_.append(texts_.empty() ? text : ptx_without_header(text)).append("\n");
    return CUDA_SUCCESS;
}

CUresult Linked::add_image(const char* data, size_t size) {
    Image image;
    CUSLICE_TRY(read_image(data, capability_, image, size));
    if (!image.opaque.empty())
        unreadable_.assign(data, size);
    images_.push_back(std::move(image));
    return CUDA_SUCCESS;
}

CUresult Linked::add_object(const char* data, size_t size) {
    CUresult result = CUDA_SUCCESS;
    const auto add_section = [&](const unsigned char* at, size_t left) {
        while (left >= sizeof(FatBinaryContainer)) {
            const auto container = value_at<FatBinaryContainer>(at);
            const uint64_t bytes = container.header_size + container.size;
            if (container.magic != FatBinaryContainer::kMagic || bytes > left)
                return container.magic == 0;  // padding
            result = add_image(reinterpret_cast<const char*>(at), bytes);
            if (result != CUDA_SUCCESS)
                return false;
            const uint64_t step = std::min<uint64_t>(left, (bytes + 7) & ~uint64_t{7});
            at += step;
            left -= step;
        }
        return true;
    };
    const size_t before = images_.size();
    std::string unreadable_before = unreadable_;
    if (each_device_section(bytes_of(data), size, add_section) && images_.size() > before)
        return CUDA_SUCCESS;
    images_.resize(before);
    unreadable_ = std::move(unreadable_before);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_IMAGE;
}

std::string Linked::complete() const {
    if (!unreadable_.empty())
        return unreadable_;
    if (texts_.empty() && images_.size() == 1 && !lone_cubin_.empty())
        return lone_cubin_;
    std::string text = texts_;
    if (text.empty())
        text = ".version 7.0\n.target sm_" + std::to_string(capability_) + "\n.address_size 64\n";
    for (const Image& image : images_) {
        for (const VariableInfo& variable : image.variables)
            text += declare(variable);
        for (const KernelInfo& kernel : image.kernels)
            text += declare(kernel);
    }
    return text + '\0';
}

}  // namespace cuslice::fake
