// SPDX-License-Identifier: Apache-2.0
// The stub's readers of libraries' files and of the loader's cache: they run in every program that opens a library,
// and must cope with any file.
#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/elf/made_up_cache.h"
#include "tests/elf/made_up_file.h"

extern "C" {
#include "stub/library_file.h"
#include "stub/loader_cache.h"
}

namespace cuslice::tests {
namespace {

using Words = std::vector<std::string>;

const std::string kModules = CUSLICE_TEST_MODULES;

std::string module(const std::string& kind) { return kModules + "/libstub_module_" + kind + ".so"; }

// A file of these bytes, in memory.
class Bytes {
  public:
    explicit Bytes(const std::string& text) : file_(memfd_create("odd", 0)) {
        REQUIRE(file_ >= 0);
        REQUIRE(write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    ~Bytes() { close(file_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

  private:
    int file_;
};

struct Read {
    bool library, unknown;
    std::string rpath, runpath;
    Words needs;
};

Read read(const std::string& path, size_t memory_size = 1 << 20) {
    constexpr size_t kBehind = 64;
    std::vector<char> memory(memory_size + kBehind, 'x');
    work work{memory.data(), memory.data(), memory.data() + memory_size};
    library_file file{};
    const reading_result how = read_library_file(path.c_str(), &work, &file);
    Read result{how == library_read, how == library_unknown || file.incomplete, "", "", {}};
    CHECK(work.end == memory.data() + memory_size);  // what was lent is back
    CHECK(work.next <= work.end);
    CHECK(std::string(work.end, kBehind) == std::string(kBehind, 'x'));
    if (file.rpath != nullptr)
        result.rpath = file.rpath;
    if (file.runpath != nullptr)
        result.runpath = file.runpath;
    for (size_t i = 0; i < file.needs_count; ++i)
        result.needs.emplace_back(file.needs[i]);
    return result;
}

bool has(const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("a library's file says what it needs and where it looks for that") {
    const Read new_tags = read(module("runpath")), old_tags = read(module("rpath"));
    CHECK(new_tags.library);
    CHECK(new_tags.runpath == "$ORIGIN/below");
    CHECK(new_tags.rpath.empty());
    CHECK(has(new_tags.needs, "libstub_below.so"));
    CHECK(old_tags.rpath == "/none:${ORIGIN}/below");
    CHECK(old_tags.runpath.empty());
    CHECK(has(old_tags.needs, "libstub_middle.so"));
    CHECK(has(read(module("nvml")).needs, "libnvidia-ml.so.1"));
}

TEST_CASE("what is no library for this machine is none") {
    std::string text = read_text(module("runpath"));
    const auto with = [&](size_t at, char byte) {
        std::string other = text;
        other[at] = byte;
        return read(Bytes(other).path()).library;
    };
    CHECK(with(EI_OSABI, 3));
    CHECK_FALSE(with(EI_MAG1, 'e'));
    CHECK_FALSE(with(EI_CLASS, ELFCLASS32));
    CHECK_FALSE(with(EI_DATA, ELFDATA2MSB));
    CHECK_FALSE(with(offsetof(Elf64_Ehdr, e_machine), EM_S390));
    CHECK_FALSE(with(offsetof(Elf64_Ehdr, e_type), ET_EXEC));
    CHECK_FALSE(with(offsetof(Elf64_Ehdr, e_phentsize), 32));
    CHECK_FALSE(read("/not/there").library);
    CHECK_FALSE(read("/dev/null").library);
    CHECK_FALSE(read(kModules).library);
    CHECK_FALSE(read("/proc/self/mem").library);
}

TEST_CASE("nothing waits for the other end of a pipe") {
    const Folder folder;
    const std::string pipe = folder.path() + "/pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_FALSE(read(pipe).library);
}

TEST_CASE("a library of any length is read as far as it goes") {
    const std::string text = read_text(module("runpath"));
    const size_t all = read(module("runpath")).needs.size();  // a sanitizer's libraries, too
    for (size_t size = 0; size < text.size(); size += size < 1024 ? 8 : 64) {
        const Read got = read(Bytes(text.substr(0, size)).path());
        CHECK(got.needs.size() <= all);
        CHECK((got.needs.size() == all || got.unknown || !got.library));
        for (const std::string& name : got.needs)
            CHECK(text.find(name + '\0') != std::string::npos);
    }
}

TEST_CASE("working memory of any size is enough or isn't, and no more is written to") {
    const Words needs = read(module("runpath")).needs;
    bool all = false;
    for (size_t size = 0; size < 16384; size += 16) {
        const Read got = read(module("runpath"), size);
        CHECK(got.needs.size() <= needs.size());
        CHECK((got.needs == needs || got.unknown));
        all = got.needs == needs;
    }
    CHECK(all);
}

TEST_CASE("a library with more than is looked at may need what was not seen") {
    MadeUpFile made;
    for (int i = 0; i < 40; ++i)
        made.add(DT_DEBUG, 0);
    made.name(DT_NEEDED, "libcuda.so.1");
    CHECK(read(Bytes(made.bytes()).path()).needs == Words{"libcuda.so.1"});
    CHECK_FALSE(read(Bytes(made.bytes()).path()).unknown);
    std::string long_one = made.bytes();
    long_one.resize(MadeUpFile::kDynamicAt + (elf_most_dynamic_entries + 10) * sizeof(Elf64_Dyn));
    Elf64_Dyn filler{};
    filler.d_tag = DT_DEBUG;
    for (size_t i = made.dynamic.size(); i < elf_most_dynamic_entries + 5; ++i)
        std::memcpy(&long_one[MadeUpFile::kDynamicAt + i * sizeof filler], &filler, sizeof filler);
    CHECK(read(Bytes(long_one).path()).unknown);
    std::string bytes(64 * 1024, '\0');
    Elf64_Ehdr header = made.header;
    header.e_phnum = elf_most_segments + 1;
    header.e_phoff = sizeof header;
    std::memcpy(bytes.data(), &header, sizeof header);
    CHECK(read(Bytes(bytes).path()).unknown);
}

TEST_CASE("a library whose needs lie where the reader does not look may need anything") {
    MadeUpFile made;
    made.name(DT_NEEDED, "libcuda.so.1");
    MadeUpFile beside = made, texts = made, name = made, folders = made;
    beside.segments.back().p_filesz = 0;  // the loader maps whole pages
    texts.segments.front().p_filesz = 8;
    name.add(DT_NEEDED, MadeUpFile::kSize);
    folders.add(DT_RUNPATH, MadeUpFile::kSize);
    CHECK_FALSE(read(Bytes(made.bytes()).path()).unknown);
    for (const MadeUpFile& odd : {beside, texts, name, folders})
        CHECK(read(Bytes(odd.bytes()).path()).unknown);
}

TEST_CASE("a library with any bytes changed is read or not, and that is all", "[fuzz]") {
    const std::string text = read_text(module("rpath"));
    std::mt19937 random(20261125);
    const auto below = [&](size_t count) { return random() % count; };
    size_t dynamic = 0;
    Elf64_Ehdr header;
    std::memcpy(&header, text.data(), sizeof(header));
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        std::memcpy(&segment, text.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
        if (segment.p_type == PT_DYNAMIC)
            dynamic = segment.p_offset;
    }
    REQUIRE(dynamic != 0);
    constexpr char kBytes[] = {0, 1, 2, 7, 8, 0x7f, char(0x80), char(0xff)};
    for (int round = 0; round < 2000; ++round) {
        std::string other = text;
        // In the header, the table of segments, or the dynamic section: runs of bytes as well.
        const size_t places[] = {below(64), 64 + below(header.e_phnum * sizeof(Elf64_Phdr)), dynamic + below(400)};
        for (int change = 0; change <= round % 4; ++change) {
            const size_t at = places[below(3)];
            other.replace(at, 1 + below(8), 1 + below(8), kBytes[below(sizeof(kBytes))]);
        }
        read(Bytes(other).path());
    }
}

TEST_CASE("the loader's cache is read when it is first asked, once, and does no harm where it is cut short") {
    const Folder folder;
    const std::string path = folder.write("cache", made_up_cache({{kThisMachine, "liba.so", "/one/liba.so"},
                                                                  {kOtherMachine, "liba.so", "/other/liba.so"},
                                                                  {kThisMachine, "liba.so", "/two/liba.so"}}));
    loader_cache cache{};
    cache.path = path.c_str();
    size_t place = 0;
    const auto next = [&] {
        const char* const found = next_in_cache(&cache, "liba.so", &place);
        return found == nullptr ? std::string() : found;
    };
    CHECK(next() == "/one/liba.so");
    REQUIRE(truncate(path.c_str(), 0) == 0);
    CHECK(next() == "/two/liba.so");
    CHECK(next().empty());
    forget_cache(&cache);
}

TEST_CASE("a loader's cache that is missing, empty or no file has nothing") {
    const Folder folder;
    for (const std::string& path : {folder.path() + "/none", folder.write("empty", ""), folder.path()}) {
        loader_cache cache{};
        cache.path = path.c_str();
        size_t place = 0;
        CHECK(next_in_cache(&cache, "liba.so", &place) == nullptr);
        forget_cache(&cache);
    }
}

}  // namespace cuslice::tests
