// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "fake/bytes.h"
#include "fake/driver/find.h"
#include "fake/driver/ptx_text.h"
#include "fake/driver/readable.h"
#include "virtual_gpu/driver/fat_binary.h"

namespace cuslice::fake {
namespace {

using Wrapper = FatBinaryWrapper;
using Container = FatBinaryContainer;
using Entry = FatBinaryEntry;

/// A text is compiled only where a device takes it: until then its fault is nobody's.
std::shared_ptr<const Image> read_text_part(const unsigned char* code, const Entry& entry) {
    const auto* const text = reinterpret_cast<const char*>(code);
    const auto part = std::make_shared<Image>();
    if (compile_ptx(text, strnlen(text, entry.size), *part) != CUDA_SUCCESS) {
        if (part->fault.empty())
            return nullptr;
        part->capability = static_cast<int>(entry.capability);
    }
    part->is_ptx = true;
    part->ptx_capability = part->capability;
    return part;
}

/// Null for what is no cubin, or a damaged one.
std::shared_ptr<const Image> read_cubin_part(const unsigned char* code, const Entry& entry) {
    auto part = std::make_shared<Image>();
    const bool read = entry.kind == Entry::kCubin && read_cubin(code, entry.size, *part);
    return read ? part : nullptr;
}

/// `size`: of the memory that it lies in.
CUresult read_container(const unsigned char* data, uint64_t size, int capability, Image& image) {
    if (size < sizeof(Container))
        return CUDA_ERROR_INVALID_IMAGE;
    const auto container = value_at<Container>(data);
    if (container.magic != Container::kMagic || container.header_size < sizeof(Container) ||
        container.header_size > size || container.size > size - container.header_size)
        return CUDA_ERROR_INVALID_IMAGE;
    const auto all = std::make_shared<Image>();
    const unsigned char* entry_at = data + container.header_size;
    for (uint64_t left = container.size; left >= sizeof(Entry);) {
        const auto entry = value_at<Entry>(entry_at);
        if (!entry.fits(left))
            return CUDA_ERROR_INVALID_IMAGE;
        const unsigned char* code = entry_at + entry.header_size;
        const bool ptx = entry.kind == Entry::kPtx;
        all->targets.push_back({ptx, static_cast<int>(entry.capability)});
        if (!entry.is_compressed()) {
            const auto part = ptx ? read_text_part(code, entry) : read_cubin_part(code, entry);
            if (part == nullptr && entry.kind == Entry::kCubin && is_cubin(code, entry.size))
                return CUDA_ERROR_INVALID_IMAGE;
            if (part != nullptr)
                all->parts.push_back(part);
        }
        entry_at += entry.bytes();
        left -= entry.bytes();
    }
    if (all->parts.empty()) {
        all->opaque = "a fat binary whose parts are all compressed";
    } else {
        const auto sound =
            std::find_if(all->parts.begin(), all->parts.end(), [](const auto& part) { return part->fault.empty(); });
        const Image& named = sound == all->parts.end() ? *all->parts.front() : **sound;
        all->kernels = named.kernels;
        all->variables = named.variables;
    }
    const std::shared_ptr<const Image> chosen = capability == 0 ? all : image_for(all, capability);
    if (chosen == nullptr)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    image = *chosen;
    return image.fault.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

/// A container whose end it says itself.
CUresult read_unsized_container(const unsigned char* data, int capability, Image& image) {
    if (!is_readable(data, sizeof(Container)))
        return CUDA_ERROR_INVALID_IMAGE;
    const auto container = value_at<Container>(data);
    if (container.size > uint64_t{1} << 32)
        return CUDA_ERROR_INVALID_IMAGE;
    const uint64_t size = container.header_size + container.size;
    return is_readable(data, size) ? read_container(data, size, capability, image) : CUDA_ERROR_INVALID_IMAGE;
}

/// The magic number of an image, 0 if it is shorter.
uint32_t magic_of(const unsigned char* data, uint64_t size) {
    const bool there = size == kUnknownSize ? is_readable(data, sizeof(uint32_t)) : size >= sizeof(uint32_t);
    return there ? value_at<uint32_t>(data) : 0;
}

/// The same image with the target that a device takes.
std::shared_ptr<const Image> unread_image_for(const Image& image, int device) {
    const Target* best = nullptr;
    for (const Target& target : image.targets) {
        const bool runs = target.capability == 0 || runs_on(target.ptx, target.capability, device);
        if (runs && (best == nullptr || is_taken_before(target, *best)))
            best = &target;
    }
    auto chosen = std::make_shared<Image>(image);
    chosen->is_ptx = best->ptx;
    chosen->capability = best->capability;
    chosen->ptx_capability = best->ptx ? best->capability : 0;
    return chosen;
}

size_t text_length(const char* text, uint64_t size) {
    bool ended = false;
    return size == kUnknownSize ? readable_length(text, ended) : strnlen(text, size);
}

}  // namespace

std::shared_ptr<const Image> image_for(const std::shared_ptr<const Image>& image, int capability) {
    const auto runs = [&](bool ptx, int code) { return code == 0 || runs_on(ptx, code, capability); };
    if (image->targets.empty())
        return runs(image->is_ptx, image->capability) ? image : nullptr;
    if (std::none_of(image->targets.begin(), image->targets.end(),
                     [&](const Target& target) { return runs(target.ptx, target.capability); }))
        return nullptr;
    std::shared_ptr<const Image> best;
    for (const auto& part : image->parts) {
        if (!runs(part->is_ptx, part->capability))
            continue;
        const bool better =
            best == nullptr || is_taken_before({part->is_ptx, part->capability}, {best->is_ptx, best->capability});
        if (better)
            best = part;
    }
    if (best != nullptr)
        return best;
    return image->parts.empty() ? unread_image_for(*image, capability) : image->parts.front();
}

std::shared_ptr<const KernelInfo> kernel_named(const std::shared_ptr<const Image>& image, const std::string& name) {
    for (const KernelInfo& info : image->kernels)
        if (info.name == name)
            return {image, &info};
    if (image->opaque.empty() || name.empty())
        return nullptr;
    auto info = std::make_shared<KernelInfo>();
    info->name = name;
    info->parameters_known = false;
    return info;
}

CUresult compile_ptx(const char* text, size_t size, Image& image) {
    image.fault = check_ptx({text, size});
    return image.fault.empty() && read_ptx(text, size, image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

CUresult read_image(const void* pointer, int capability, Image& image, uint64_t size) {
    const auto* data = static_cast<const unsigned char*>(pointer);
    const bool sized = size != kUnknownSize;
    // Text first: it may be shorter than the four bytes of a magic number.
    if (size == 0 || !(sized || is_readable(data, 1)) || data[0] == '\0')
        return CUDA_ERROR_INVALID_IMAGE;
    const uint32_t magic = magic_of(data, size);
    uint32_t elf_magic = 0;
    std::memcpy(&elf_magic, ELFMAG, sizeof elf_magic);
    // A bare fat binary begins with a letter too, but no text goes on as it does.
    if (data[0] >= '\t' && data[0] < 0x7f && magic != Container::kMagic) {
        const std::string_view text(static_cast<const char*>(pointer),
                                    text_length(static_cast<const char*>(pointer), size));
        if (text.find(".version") == text.npos && text.find(".entry") == text.npos &&
            text.find(".global") == text.npos) {
            return CUDA_ERROR_INVALID_IMAGE;
        }
        CUSLICE_TRY(compile_ptx(text.data(), text.size(), image));
        image.is_ptx = true;
        image.ptx_capability = image.capability;
    } else if (magic == elf_magic) {
        const uint64_t bytes = sized ? size : size_of_cubin(data);
        if (!read_cubin(data, bytes, image))
            return CUDA_ERROR_INVALID_IMAGE;
    } else if (magic == Wrapper::kMagic && !sized) {
        // In a file there is nothing that it could point to.
        if (!is_readable(data, sizeof(Wrapper)))
            return CUDA_ERROR_INVALID_IMAGE;
        return read_unsized_container(value_at<Wrapper>(data).container, capability, image);
    } else if (magic == Container::kMagic) {
        return sized ? read_container(data, size, capability, image) : read_unsized_container(data, capability, image);
    } else {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (capability != 0 && !runs_on(image.is_ptx, image.capability, capability))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
