// Cubins and fat binaries, made here byte by byte as the tools write them.

#include "virtual_gpu/fake/driver/image.h"

#include <elf.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

/// A cubin for one capability with one kernel of two parameters and one variable with a value. From 9.0 on the count of
/// registers is an attribute alone, and shared memory begins with 1024 bytes that aren't the kernel's.
class Cubin {
  public:
    explicit Cubin(unsigned capability, unsigned char abi) {
        const bool attributes = capability >= 90;
        header_.e_ident[EI_CLASS] = ELFCLASS64;
        std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
        header_.e_ident[EI_ABIVERSION] = abi;
        header_.e_machine = 190;
        header_.e_flags = abi >= 8 ? 0x6000004 | capability << 8 : 0x500500 | capability;
        header_.e_shentsize = sizeof(Elf64_Shdr);
        add("", SHT_NULL, "");
        const unsigned code = add(".text.kernel", SHT_PROGBITS, std::string(128, '\0'), attributes ? 0 : 18U << 24);
        const unsigned data = add(".nv.global.init", SHT_PROGBITS, std::string("\x2a\0\0\0", 4));
        // Two parameters (ordinal 1 first), then the launch bound of 256 threads.
        const unsigned char info[] = {4,  0x17, 12, 0, 0, 0, 0, 0, 1, 0, 8, 0,    0,    0xf0, 0x11, 0,    4,    0x17,
                                      12, 0,    0,  0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x21, 0,    3,    0x1b, 0xff, 0,
                                      4,  5,    12, 0, 0, 1, 0, 0, 1, 0, 0, 0,    1,    0,    0,    0};
        add(".nv.info.kernel", SHT_LOPROC, std::string(reinterpret_cast<const char*>(info), sizeof info));
        add(".nv.shared.kernel", SHT_NOBITS, "", 0, attributes ? 1024 + 512 : 512);
        add(".nv.constant3", SHT_PROGBITS, std::string(80, '\0'));
        if (attributes) {
            // Of symbol 1, the kernel: 18 registers, a frame of 16 bytes, 64 with what it calls. Of symbol 2, no
            // kernel.
            const unsigned char resources[] = {4,  0x2f, 8, 0, 1,  0,    0, 0, 18, 0,    0, 0, 4,  0x11, 8, 0,
                                               1,  0,    0, 0, 16, 0,    0, 0, 4,  0x12, 8, 0, 1,  0,    0, 0,
                                               64, 0,    0, 0, 4,  0x2f, 8, 0, 2,  0,    0, 0, 99, 0,    0, 0};
            add(".nv.info", SHT_LOPROC, std::string(reinterpret_cast<const char*>(resources), sizeof resources));
        }
        const unsigned strings = add(".strtab", SHT_STRTAB, std::string("\0kernel\0answer\0", 15));
        std::string symbols(sizeof(Elf64_Sym), '\0');
        symbols += symbol(1, STT_FUNC, 0x10, code, 0, 128) + symbol(8, STT_OBJECT, 0, data, 0, 4);
        add(".symtab", SHT_SYMTAB, symbols, 0, 0, strings);
    }
    std::string bytes() {
        header_.e_shstrndx = static_cast<Elf64_Half>(add(".shstrtab", SHT_STRTAB, "", 0, names_.size() + 10));
        sections_.back().sh_offset = sizeof header_ + contents_.size();
        contents_ += names_;
        header_.e_shnum = static_cast<Elf64_Half>(sections_.size());
        header_.e_shoff = sizeof header_ + contents_.size();
        std::string out(reinterpret_cast<const char*>(&header_), sizeof header_);
        out += contents_;
        out.append(reinterpret_cast<const char*>(sections_.data()), sections_.size() * sizeof(Elf64_Shdr));
        return out;
    }

  private:
    static std::string symbol(unsigned name, unsigned char type, unsigned char other, unsigned section, unsigned value,
                              unsigned size) {
        Elf64_Sym entry{};
        entry.st_name = name;
        entry.st_info = static_cast<unsigned char>(STB_GLOBAL << 4 | type);
        entry.st_other = other;
        entry.st_shndx = static_cast<Elf64_Section>(section);
        entry.st_value = value;
        entry.st_size = size;
        return {reinterpret_cast<const char*>(&entry), sizeof entry};
    }
    unsigned add(const std::string& name, unsigned type, const std::string& contents, unsigned info = 0,
                 std::size_t size = 0, unsigned link = 0) {
        Elf64_Shdr section{};
        section.sh_name = static_cast<unsigned>(names_.size());
        names_ += name + '\0';
        section.sh_type = type;
        section.sh_offset = sizeof header_ + contents_.size();
        section.sh_size = size != 0 ? size : contents.size();
        section.sh_info = info;
        section.sh_link = link;
        contents_ += contents;
        sections_.push_back(section);
        return static_cast<unsigned>(sections_.size() - 1);
    }

    Elf64_Ehdr header_{};
    std::vector<Elf64_Shdr> sections_;
    std::string names_, contents_;
};

template <typename T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// An entry of a fat binary.
std::string entry(unsigned short kind, unsigned capability, unsigned long long flags, const std::string& code) {
    std::string out;
    put<unsigned short>(out, kind);
    put<unsigned short>(out, 0x101);
    put<unsigned>(out, 64);
    put<unsigned long long>(out, code.size());
    put<unsigned long long>(out, 0);
    put<unsigned short>(out, 0);
    put<unsigned short>(out, 9);
    put<unsigned>(out, capability);
    put<unsigned long long>(out, 0);
    put<unsigned long long>(out, flags);
    put<unsigned long long>(out, 0);
    put<unsigned long long>(out, 0);
    return out + code;
}

std::string container(const std::string& entries) {
    std::string out;
    put<unsigned>(out, 0xba55ed50);
    put<unsigned short>(out, 1);
    put<unsigned short>(out, 16);
    put<unsigned long long>(out, entries.size());
    return out + entries;
}

}  // namespace

TEST_CASE("a cubin tells its kernels, their parameters and limits, and its variables") {
    for (const unsigned char abi : {7, 8}) {
        const std::string cubin = Cubin(86, abi).bytes();
        Image image;
        REQUIRE(read_image(cubin.data(), 86, image) == CUDA_SUCCESS);
        CHECK(image.capability == 86);
        REQUIRE(image.kernels.size() == 1);
        const KernelInfo& kernel = image.kernels[0];
        CHECK(kernel.name == "kernel");
        CHECK(kernel.registers == 18);
        CHECK(kernel.max_threads == 256);
        CHECK(kernel.shared_bytes == 512);
        REQUIRE(kernel.parameters.size() == 2);
        CHECK(kernel.parameters[0].size == 8);
        CHECK(kernel.parameters[1].offset == 8);
        CHECK(kernel.parameters[1].size == 4);
        REQUIRE(image.variables.size() == 1);
        CHECK(image.variables[0].name == "answer");
        CHECK(image.variables[0].contents == std::vector<unsigned char>{42, 0, 0, 0});
    }
}

TEST_CASE("a kernel's registers and memory are read where the cubin has them") {
    for (const unsigned capability : {80U, 90U, 120U}) {
        const std::string cubin = Cubin(capability, 8).bytes();
        Image image;
        REQUIRE(read_image(cubin.data(), static_cast<int>(capability), image) == CUDA_SUCCESS);
        REQUIRE(image.kernels.size() == 1);
        CHECK(image.kernels[0].registers == 18);
        CHECK(image.kernels[0].shared_bytes == 512);
        CHECK(image.kernels[0].const_bytes == 80);
        CHECK(image.kernels[0].local_bytes == (capability >= 90 ? 64 : 0));
    }
}

TEST_CASE("code runs on the devices that it was made for") {
    const std::string cubin = Cubin(80, 8).bytes();
    Image image;
    CHECK(read_image(cubin.data(), 86, image) == CUDA_SUCCESS);
    CHECK(read_image(cubin.data(), 90, image) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(read_image(cubin.data(), 75, image) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(runs_on(true, 75, 90));
    CHECK_FALSE(runs_on(true, 90, 75));
    std::string other = cubin;
    other[18] = 62;  // x86-64
    CHECK(read_image(other.data(), 80, image) == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE("a fat binary is read from a part that isn't compressed") {
    const std::string ptx = ".version 8.0\n.target sm_80\n.visible .entry from_ptx() { ret; }\n";
    Image image;
    const std::string both =
        container(entry(1, 80, 0x8011, "zzzz") + entry(2, 75, 0x11, Cubin(75, 8).bytes()) + entry(1, 80, 0x11, ptx));
    REQUIRE(read_image(both.data(), 75, image) == CUDA_SUCCESS);
    CHECK(image.opaque.empty());
    REQUIRE(image.kernels.size() == 1);
    CHECK(image.kernels[0].name == "kernel");
    REQUIRE(read_image(both.data(), 86, image) == CUDA_SUCCESS);  // the cubin is for another device
    CHECK(image.kernels[0].name == "from_ptx");
    CHECK(read_image(both.data(), 70, image) == CUDA_ERROR_NO_BINARY_FOR_GPU);

    const std::string text = container(entry(1, 80, 0x11, ptx));
    image = {};
    REQUIRE(read_image(text.data(), 86, image) == CUDA_SUCCESS);
    CHECK(image.kernels[0].name == "from_ptx");

    const std::string packed = container(entry(1, 80, 0x2011, "zzzz"));
    image = {};
    REQUIRE(read_image(packed.data(), 86, image) == CUDA_SUCCESS);
    CHECK_FALSE(image.opaque.empty());

    struct {
        unsigned magic = 0x466243b1, version = 1;
        const void* data = nullptr;
        void* name = nullptr;
    } wrapper;
    wrapper.data = text.data();
    image = {};
    REQUIRE(read_image(&wrapper, 86, image) == CUDA_SUCCESS);
    CHECK(image.kernels[0].name == "from_ptx");
}

TEST_CASE("of a fat binary's parts the one that the device takes is read") {
    const std::string ptx = ".version 8.0\n.target sm_80\n.visible .entry kernel() { .shared .b8 s[7]; ret; }\n";
    const std::string several = container(entry(2, 75, 0x11, Cubin(75, 8).bytes()) + entry(1, 80, 0x11, ptx) +
                                          entry(2, 90, 0x11, Cubin(90, 8).bytes()) + entry(2, 100, 0x8011, "zzzz"));
    for (const auto& [device, code, is_ptx] :
         {std::tuple{75, 75, false}, {86, 80, true}, {90, 90, false}, {100, 80, true}, {120, 80, true}}) {
        Image image;
        REQUIRE(read_image(several.data(), device, image) == CUDA_SUCCESS);
        CHECK(image.capability == code);
        CHECK(image.is_ptx == is_ptx);
        // A library is read before its devices are known.
        const auto library = std::make_shared<Image>();
        REQUIRE(read_image(several.data(), 0, *library) == CUDA_SUCCESS);
        const auto chosen = image_for(library, device);
        REQUIRE(chosen != nullptr);
        CHECK(chosen->capability == code);
        CHECK(chosen->kernels[0].shared_bytes == (is_ptx ? 7 : 512));
        CHECK(image_for(library, 70) == nullptr);
    }
}

TEST_CASE("a container that runs past its end is refused") {
    std::string broken = container(entry(1, 80, 0x11, "text"));
    broken[16 + 8] = 0x7f;  // the entry is longer than the container
    Image image;
    CHECK(read_image(broken.data(), 86, image) == CUDA_ERROR_INVALID_IMAGE);
}
