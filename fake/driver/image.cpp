#include "fake/driver/image.h"

#include <algorithm>
#include <cstring>

#include "fake/driver/ptx_text.h"
#include "fake/driver/readable.h"

namespace cuslice::fake {
namespace {

// Layout of a fat binary, as nvcc writes it: a wrapper in the program, which points to a container of entries.
constexpr std::uint32_t wrapper_magic = 0x466243b1, container_magic = 0xba55ed50;
constexpr std::uint64_t compressed = 0x2000 | 0x8000;  // LZ4, Zstandard

struct Wrapper {
    std::uint32_t magic, version;
    const unsigned char* container;
    const void* name;
};
struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size;
};
struct Entry {
    std::uint16_t kind, attributes;  // kind 1: PTX, 2: cubin
    std::uint32_t header_size;
    std::uint64_t size;
    std::uint32_t compressed_size, reserved;
    std::uint16_t minor, major;
    std::uint32_t capability;
    std::uint32_t name_offset, name_size;
    std::uint64_t flags, reserved2, uncompressed_size;
};

template <typename T>
T at(const unsigned char* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

/// `size`: of the memory that it lies in.
CUresult read_container(const unsigned char* data, std::uint64_t size, int capability, Image& image) {
    if (size < sizeof(Container)) return CUDA_ERROR_INVALID_IMAGE;
    const auto container = at<Container>(data);
    if (container.magic != container_magic || container.header_size < sizeof(Container) ||
        container.header_size > size || container.size > size - container.header_size)
        return CUDA_ERROR_INVALID_IMAGE;
    const auto all = std::make_shared<Image>();
    const unsigned char* entry_at = data + container.header_size;
    for (std::uint64_t left = container.size; left >= sizeof(Entry);) {
        const auto entry = at<Entry>(entry_at);
        if (entry.header_size < sizeof(Entry) || entry.header_size > left || entry.size > left - entry.header_size)
            return CUDA_ERROR_INVALID_IMAGE;
        const unsigned char* code = entry_at + entry.header_size;
        const bool ptx = entry.kind == 1;
        all->targets.push_back({ptx, static_cast<int>(entry.capability)});
        if ((entry.flags & compressed) == 0) {
            const auto part = std::make_shared<Image>();
            const bool read = ptx ? read_ptx(reinterpret_cast<const char*>(code), entry.size, *part)
                                  : entry.kind == 2 && read_cubin(code, entry.size, *part);
            if (!read && entry.kind == 2 && is_cubin(code, entry.size)) return CUDA_ERROR_INVALID_IMAGE;
            part->is_ptx = ptx;
            if (read) all->parts.push_back(part);
        }
        entry_at = code + entry.size;
        left -= entry.header_size + entry.size;
    }
    if (all->parts.empty()) {
        all->opaque = "a fat binary whose parts are all compressed";
    } else {
        all->kernels = all->parts.front()->kernels;
        all->variables = all->parts.front()->variables;
    }
    const std::shared_ptr<const Image> chosen = capability == 0 ? all : image_for(all, capability);
    if (chosen == nullptr) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    image = *chosen;
    return CUDA_SUCCESS;
}

/// A container whose end it says itself.
CUresult read_unsized_container(const unsigned char* data, int capability, Image& image) {
    if (!is_readable(data, sizeof(Container))) return CUDA_ERROR_INVALID_IMAGE;
    const auto container = at<Container>(data);
    if (container.size > std::uint64_t{1} << 32) return CUDA_ERROR_INVALID_IMAGE;
    const std::uint64_t size = container.header_size + container.size;
    return is_readable(data, size) ? read_container(data, size, capability, image) : CUDA_ERROR_INVALID_IMAGE;
}

/// The magic number of an image, 0 if it is shorter.
std::uint32_t magic_of(const unsigned char* data, std::uint64_t size) {
    const bool there = size == kUnknownSize ? is_readable(data, sizeof(std::uint32_t)) : size >= sizeof(std::uint32_t);
    return there ? at<std::uint32_t>(data) : 0;
}

std::size_t text_length(const char* text, std::uint64_t size) {
    bool ended = false;
    return size == kUnknownSize ? readable_length(text, ended) : strnlen(text, size);
}

}  // namespace

bool runs_on(bool ptx, int code, int device) {
    return ptx ? code <= device : code / 10 == device / 10 && code % 10 <= device % 10;
}

std::shared_ptr<const Image> image_for(const std::shared_ptr<const Image>& image, int capability) {
    const auto runs = [&](bool ptx, int code) { return code == 0 || runs_on(ptx, code, capability); };
    if (image->targets.empty()) return runs(image->is_ptx, image->capability) ? image : nullptr;
    if (std::none_of(image->targets.begin(), image->targets.end(),
                     [&](const Target& target) { return runs(target.ptx, target.capability); }))
        return nullptr;
    std::shared_ptr<const Image> best;
    for (const auto& part : image->parts) {
        if (!runs(part->is_ptx, part->capability)) continue;
        const bool better = best == nullptr || (best->is_ptx && !part->is_ptx) ||
                            (best->is_ptx == part->is_ptx && best->capability < part->capability);
        if (better) best = part;
    }
    if (best != nullptr) return best;
    return image->parts.empty() ? image : image->parts.front();
}

std::shared_ptr<const KernelInfo> kernel_named(const std::shared_ptr<const Image>& image, const std::string& name) {
    for (const KernelInfo& info : image->kernels)
        if (info.name == name) return {image, &info};
    if (image->opaque.empty() || name.empty()) return nullptr;
    auto info = std::make_shared<KernelInfo>();
    info->name = name;
    info->parameters_known = false;
    return info;
}

CUresult compile_ptx(const char* text, std::size_t size, Image& image) {
    image.fault = check_ptx({text, size});
    return image.fault.empty() && read_ptx(text, size, image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

CUresult read_image(const void* pointer, int capability, Image& image, std::uint64_t size) {
    const auto* data = static_cast<const unsigned char*>(pointer);
    const bool sized = size != kUnknownSize;
    // Text first: it may be shorter than the four bytes of a magic number.
    if (size == 0 || !(sized || is_readable(data, 1)) || data[0] == '\0') return CUDA_ERROR_INVALID_IMAGE;
    const std::uint32_t magic = magic_of(data, size);
    std::uint32_t elf_magic = 0;
    std::memcpy(&elf_magic,
                "\x7f"
                "ELF",
                sizeof elf_magic);
    // A bare fat binary begins with a letter too, but no text goes on as it does.
    if (data[0] >= '\t' && data[0] < 0x7f && magic != container_magic) {
        const std::string_view text(static_cast<const char*>(pointer),
                                    text_length(static_cast<const char*>(pointer), size));
        if (text.find(".version") == text.npos && text.find(".entry") == text.npos &&
            text.find(".global") == text.npos) {
            return CUDA_ERROR_INVALID_IMAGE;
        }
        if (const CUresult bad = compile_ptx(text.data(), text.size(), image); bad != CUDA_SUCCESS) return bad;
        image.is_ptx = true;
    } else if (magic == elf_magic) {
        const std::uint64_t bytes = sized ? size : size_of_cubin(data);
        if (!read_cubin(data, bytes, image)) return CUDA_ERROR_INVALID_IMAGE;
    } else if (magic == wrapper_magic && !sized) {
        // In a file there is nothing that it could point to.
        if (!is_readable(data, sizeof(Wrapper))) return CUDA_ERROR_INVALID_IMAGE;
        return read_unsized_container(at<Wrapper>(data).container, capability, image);
    } else if (magic == container_magic) {
        return sized ? read_container(data, size, capability, image) : read_unsized_container(data, capability, image);
    } else {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (capability != 0 && !runs_on(image.is_ptx, image.capability, capability)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
