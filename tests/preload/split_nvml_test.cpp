// SPDX-License-Identifier: Apache-2.0
// Where a GPU is split, NVML and CUDA tell the same story.
#include <algorithm>
#include <cctype>
#include <set>

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "virtual_gpu/driver/nvml.h"

namespace cuslice::tests {
namespace {

const std::string kOk = "0", kInvalid = std::to_string(NVML_ERROR_INVALID_ARGUMENT),
                  kNotFound = std::to_string(NVML_ERROR_NOT_FOUND), kRefused = std::to_string(NVML_ERROR_NOT_SUPPORTED),
                  kTooShort = std::to_string(NVML_ERROR_INSUFFICIENT_SIZE);

std::string lower(std::string text) {
    for (char& letter : text)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return text;
}

std::string word(Guest& guest, const std::string& line, size_t place = 1) {
    const Words words = split_words(guest.ask(line));
    return place < words.size() ? words[place] : "";
}

std::string of(const std::string& command, unsigned index) { return command + " " + std::to_string(index); }

/// A machine whose first GPU is split in three, and a guest that has asked NVML first, unless it is told not to.
struct SplitScene {
    explicit SplitScene(const std::string& machine = "2xh200", const Words& more = {}) : fake(machine) {
        Words settings{"CUSLICE_SPLIT=0=3", "CUDA_DEVICE_ORDER=PCI_BUS_ID"};
        settings.insert(settings.end(), more.begin(), more.end());
        guest = std::make_unique<Guest>(Guest::route("linked"), sliced(fake, books.path(), settings));
        outside =
            std::make_unique<Guest>(Guest::route("linked"), raw(fake, books.path(), {"CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
        REQUIRE(guest->ask("nvml") == kOk);
        REQUIRE(outside->ask("nvml") == kOk);
    }
    Words nvml_uuids(Guest& asked) const {
        Words all;
        for (unsigned i = 0, count = static_cast<unsigned>(asked.number("nvmlcount")); i < count; i++)
            all.push_back(word(asked, of("nvmluuid", i)));
        return all;
    }
    Words cuda_uuids(Guest& asked) const {
        Words all;
        for (unsigned i = 0, count = static_cast<unsigned>(asked.number("count")); i < count; i++)
            all.push_back(word(asked, of("uuid", i)));
        return all;
    }
    /// A part's share of the first GPU.
    uint64_t part() { return guest->number("nvmlmemory 0"); }

    Folder books;
    std::string fake;
    std::unique_ptr<Guest> guest, outside;
};

TEST_CASE("NVML counts the parts of a GPU that is split, before CUDA starts and as CUDA does") {
    SplitScene s;
    CHECK(s.guest->ask("nvmlcount") == "0 4 0 4");
    const Words before = s.nvml_uuids(*s.guest), physical = s.nvml_uuids(*s.outside);
    REQUIRE(before.size() == 4);
    CHECK(std::set<std::string>(before.begin(), before.end()).size() == 4);
    REQUIRE(physical.size() == 2);
    CHECK(std::find(before.begin(), before.end(), physical[0]) == before.end());
    CHECK(before[3] == physical[1]);
    for (unsigned i = 0; i < 4; i++)
        CHECK(s.guest->ask(of("nvmlindex", i)) == "0 " + std::to_string(i));

    REQUIRE(s.guest->code("init") == kSuccess);
    CHECK(s.cuda_uuids(*s.guest) == before);
    CHECK(s.nvml_uuids(*s.guest) == before);
    for (unsigned i = 0; i < 4; i++) {
        // CUDA's form is NVML's legacy one.
        const std::string mine = word(*s.guest, of("pci", i));
        CHECK(word(*s.guest, of("nvmlpci", i), 2) == mine);
    }
    CHECK(s.guest->ask("nvmluuid 0 8") == kTooShort + " ");
}

TEST_CASE("NVML asked after CUDA has started, or by a program that CUDA never starts in, counts the same") {
    const Folder books;
    Guest late(Guest::route("linked"), sliced("2xh200", books.path(), {"CUSLICE_SPLIT=0=3"}));
    REQUIRE(late.code("init") == kSuccess);
    REQUIRE(late.code("retain 1") == kSuccess);
    REQUIRE(late.ask("nvml") == kOk);
    Guest watcher(Guest::route("linked"), sliced("2xh200", books.path(), {"CUSLICE_SPLIT=0=3"}));
    REQUIRE(watcher.ask("nvml") == kOk);
    for (unsigned i = 0; i < 4; i++) {
        CHECK(late.ask(of("nvmluuid", i)) == late.ask(of("uuid", i)));
        CHECK(late.ask(of("nvmluuid", i)) == watcher.ask(of("nvmluuid", i)));
        CHECK(late.ask(of("nvmlpci", i)) == watcher.ask(of("nvmlpci", i)));
    }
}

TEST_CASE("a part that is written with a number is that part to CUDA and NVML, alone and beside others") {
    SplitScene s;
    REQUIRE(s.guest->code("init") == kSuccess);
    const auto is_part = [&](Guest& guest, unsigned index, unsigned number) {
        CHECK(guest.ask(of("uuid", index)) == s.guest->ask(of("uuid", number)));
        CHECK(guest.ask(of("pci", index)) == s.guest->ask(of("pci", number)));
        CHECK(guest.ask(of("nvmluuid", index)) == s.guest->ask(of("nvmluuid", number)));
        CHECK(guest.ask(of("nvmlpci", index)) == s.guest->ask(of("nvmlpci", number)));
    };
    Guest alone(Guest::route("linked"), sliced(s.fake, s.books.path(), {"CUSLICE_SPLIT=0=rest#2"}));
    REQUIRE(alone.ask("nvml") == kOk);
    REQUIRE(alone.code("init") == kSuccess);
    CHECK(alone.number("count") == 2);
    is_part(alone, 0, 2);
    Guest pair(Guest::route("linked"), sliced(s.fake, s.books.path(), {"CUSLICE_SPLIT=0=1GiB#1@5+rest#0@6"}));
    REQUIRE(pair.ask("nvml") == kOk);
    REQUIRE(pair.code("init") == kSuccess);
    is_part(pair, 0, 1);
    is_part(pair, 1, 0);
}

TEST_CASE("CUDA and NVML count parts in one order, whichever GPU CUDA would put first") {
    const Folder books;
    // Without CUDA_DEVICE_ORDER the faster GPU is CUDA's first.
    Guest guest(Guest::route("linked"), sliced("1xt4,1xh200", books.path(), {"CUSLICE_SPLIT=0=3"}));
    REQUIRE(guest.ask("nvml") == kOk);
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(guest.ask("nvmlcount") == "0 4 0 4");
    REQUIRE(guest.number("count") == 4);
    for (unsigned i = 0; i < 4; i++) {
        CHECK(guest.ask(of("nvmluuid", i)) == guest.ask(of("uuid", i)));
        CHECK(guest.number(of("total", i)) <= guest.number(of("nvmlmemory", i)));
    }
    CHECK(guest.number("total 3") > 100 * kGiB);
    CHECK(guest.number("total 0") < 6 * kGiB);
}

TEST_CASE("of GPUs that were chosen for the program, NVML shows the parts of those and no other") {
    SplitScene all("3xh200");
    const Words physical = all.nvml_uuids(*all.outside);
    SplitScene s("3xh200", {"CUSLICE_VISIBLE_DEVICES=" + physical.at(0) + "," + physical.at(2)});
    REQUIRE(s.guest->ask("nvmlcount") == "0 4 0 4");
    const Words shown = s.nvml_uuids(*s.guest);
    CHECK(shown.at(3) == physical.at(2));
    CHECK(std::find(shown.begin(), shown.end(), physical.at(1)) == shown.end());
    REQUIRE(s.guest->code("init") == kSuccess);
    CHECK(s.cuda_uuids(*s.guest) == shown);
}

TEST_CASE("a choice of GPUs that no launcher has read counts for NVML before CUDA starts") {
    for (const bool nvml_first : {true, false}) {
        const Folder books;
        Guest guest(Guest::route("linked"), sliced("3xh200", books.path(), {"CUSLICE_SPLIT=0=3", "CUSLICE_GPUS=0,2"}));
        if (!nvml_first)
            REQUIRE(guest.code("init") == kSuccess);
        REQUIRE(guest.ask("nvml") == kOk);
        REQUIRE(guest.ask("nvmlcount") == "0 4 0 4");
        const std::string last = guest.ask("nvmluuid 3");
        REQUIRE(guest.code("init") == kSuccess);
        REQUIRE(guest.number("count") == 4);
        CHECK(guest.ask("uuid 3") == last);
        CHECK(guest.ask("uuid 0") == guest.ask("nvmluuid 0"));
    }
}

TEST_CASE("of all GPUs, NVML and CUDA take the same one for any, though another is emptier by now") {
    SplitScene s("2xh200", {"CUSLICE_GPUS=any"});
    const std::string first = s.guest->ask("nvmluuid 0");
    REQUIRE(s.guest->ask("nvmlcount") == "0 3 0 3");
    retain_device(*s.outside);
    REQUIRE(s.guest->code("init") == kSuccess);
    REQUIRE(s.guest->number("count") == 3);
    CHECK(s.guest->ask("uuid 0") == first);
}

TEST_CASE("settings that don't fit the GPUs fail in NVML as in CUDA, and are said once") {
    for (const bool nvml_first : {true, false}) {
        const Folder books;
        Guest guest(Guest::route("linked"), sliced("2xh200", books.path(), {"CUSLICE_SPLIT=0=3", "CUSLICE_GPUS=7"}));
        if (nvml_first)
            CHECK(guest.ask("nvml") == kInvalid);
        CHECK(guest.code("init") == kInvalidValue);
        CHECK(guest.ask("nvml") == kInvalid);
        CHECK(split_words(guest.ask("nvmlcount")).at(0) != kOk);
        REQUIRE(guest.finish() == 0);
        REQUIRE(guest.complaints().size() == 1);
        CHECK(guest.complaints()[0].find("CUSLICE_GPUS") != std::string::npos);
    }
}

TEST_CASE("NVML finds a part by whatever it says of it") {
    SplitScene s;
    for (unsigned i = 0; i < 4; i++) {
        const std::string index = "0 " + std::to_string(i), uuid = word(*s.guest, of("nvmluuid", i));
        CHECK(s.guest->ask("nvmlby UUID " + uuid) == index);
        CHECK(s.guest->ask("nvmlbybytes " + uuid) == index + " " + index);
        const Words forms = split_words(s.guest->ask(of("nvmlpci", i)));
        REQUIRE(forms.size() == 10);
        CHECK(forms[0] == "0000");
        for (unsigned form = 1; form <= 5; form++) {
            CHECK(s.guest->ask("nvmlby PciBusId " + forms[form]) == index);
            CHECK(s.guest->ask("nvmlby PciBusId_v2 " + lower(forms[form])) == index);
        }
        for (unsigned form = 6; form < 10; form++)
            CHECK(s.guest->ask("nvmlby PciBusId_v2 " + forms[form]) == index);
    }
    // The whole board's serial number, and the UUID and PCI id of the physical GPU, lead to its first partition.
    CHECK(s.guest->ask("nvmlby Serial " + word(*s.guest, "nvmlserial 2")) == "0 0");
    CHECK(s.guest->ask("nvmlby Serial " + word(*s.guest, "nvmlserial 3")) == "0 3");
    CHECK(s.guest->ask("nvmlby UUID " + word(*s.outside, "nvmluuid 0")) == "0 0");
    CHECK(s.guest->ask("nvmlby PciBusId_v2 " + word(*s.outside, "nvmlpci 0")) == "0 0");
    CHECK(s.guest->ask("nvmlby UUID GPU-00000000-0000-0000-0000-000000000000") == kNotFound + " 0");
    CHECK(s.guest->ask("nvmlby PciBusId_v2 0000:fe:1f.0") == kNotFound + " 0");
    CHECK(s.guest->ask("nvmlby PciBusId_v2 nonsense") == kInvalid + " 0");
    CHECK(split_words(s.guest->ask("nvmlindex 4")).at(0) == kInvalid);
}

TEST_CASE("NVML's memory of each part is the part's, as CUDA has it") {
    SplitScene s("2xh200", {"CUSLICE_HEADROOM=16MiB"});
    const uint64_t whole = s.outside->number("nvmlmemory 0");
    for (unsigned i = 0; i < 3; i++) {
        CHECK(s.guest->number(of("nvmlmemory", i), 1) <= whole / 3);
        CHECK(s.guest->number(of("nvmlmemory", i), 1) > whole / 3 - kGiB);
        CHECK(s.guest->number(of("nvmlmemory", i), 3) == 0);
    }
    CHECK(s.guest->ask("nvmlmemory 3") == s.outside->ask("nvmlmemory 1"));

    REQUIRE(s.guest->code("init") == kSuccess);
    REQUIRE(s.guest->code("retain 1") == kSuccess);
    REQUIRE(s.guest->code("alloc a 1073741824") == kSuccess);
    const Words info = split_words(s.guest->ask("info"));
    REQUIRE(info.size() == 3);
    const Words part = split_words(s.guest->ask("nvmlmemory2 1"));
    REQUIRE(part.size() == 5);
    CHECK(part[1] == info[2]);
    CHECK(part[1] == word(*s.guest, "total 1"));
    CHECK(part[2] == info[1]);
    CHECK(std::stoull(part[3]) >= kGiB);
    CHECK(std::stoull(part[3]) < 2 * kGiB);
    // A part that isn't used has its share of the context that the others use.
    const uint64_t context = std::stoull(part[3]) - kGiB;
    CHECK(s.guest->number("nvmlmemory2 2", 3) <= context + kMiB);
    CHECK(s.guest->number("nvmlmemory2 2", 3) + kMiB >= context);
    CHECK(s.guest->number("nvmlmemory 3", 1) == s.outside->number("nvmlmemory 1", 1));
}

TEST_CASE("NVML lists a process with the parts that it is charged on, and with what it holds of each") {
    SplitScene s;
    REQUIRE(s.guest->code("init") == kSuccess);
    for (const char* part : {"0", "1", "2"})
        CHECK(s.guest->ask("nvmlprocesses " + std::string(part)) == kOk);
    REQUIRE(s.guest->code("retain 1") == kSuccess);
    REQUIRE(s.guest->code("alloc a 1073741824") == kSuccess);
    REQUIRE(s.guest->code("retain 2") == kSuccess);
    REQUIRE(s.guest->code("alloc b 2147483648") == kSuccess);
    REQUIRE(s.outside->code("init") == kSuccess);
    REQUIRE(s.outside->code("retain 0") == kSuccess);  // a stranger, on the same physical GPU
    const std::string me = std::to_string(s.guest->pid());
    CHECK(s.guest->ask("nvmlprocesses 1") == "0 " + me);
    CHECK(s.guest->ask("nvmlprocesses 2") == "0 " + me);
    // Its share of the context.
    CHECK(s.guest->ask("nvmlprocesses 0") == "0 " + me);
    CHECK(s.guest->number("nvmlheld 0") == s.guest->number("nvmlmemory2 0", 3));
    CHECK(s.guest->number("nvmlheld 0") < kGiB);
    CHECK(s.guest->number("nvmlheld 1") == s.guest->number("nvmlmemory2 1", 3));
    CHECK(s.guest->number("nvmlheld 2") == s.guest->number("nvmlmemory2 2", 3));
    CHECK(s.guest->number("nvmlheld 2") >= 2 * kGiB);
    CHECK(s.guest->number("nvmlheld 2") < 3 * kGiB);
}

TEST_CASE("parts of one GPU are next to each other, and as near to another GPU as the GPU is") {
    SplitScene s("2xt4");
    const std::string link = std::to_string(NVML_P2P_CAPS_INDEX_NVLINK);
    const std::string siblings =
        "0 " + std::to_string(NVML_TOPOLOGY_INTERNAL) + " " + std::to_string(NVML_P2P_STATUS_OK) + " 1";
    CHECK(s.guest->ask("nvmlpair 0 1") == siblings);
    CHECK(s.guest->ask("nvmlpair 2 0") == siblings);
    CHECK(s.guest->ask("nvmlpair 1 1") == siblings);
    // The physical GPU is not asked about itself: a T4 has no NVLink.
    CHECK(s.guest->ask("nvmlpair 0 1 " + link) == siblings);
    CHECK(s.guest->ask("nvmlpair 0 3 " + link) == s.outside->ask("nvmlpair 0 1 " + link));
    CHECK(s.guest->ask("nvmlpair 0 3 " + link) != siblings);
    CHECK(s.guest->ask("nvmlpair 2 3") == s.outside->ask("nvmlpair 0 1"));
    CHECK(s.guest->ask("nvmlpair 3 2") == s.outside->ask("nvmlpair 1 0"));
    CHECK(s.guest->ask("nvmlpair 3 3") == s.outside->ask("nvmlpair 1 1"));
}

TEST_CASE("what NVML says of a part that no function of ours looks at is the physical GPU's") {
    SplitScene s;
    for (unsigned i = 0; i < 3; i++)
        CHECK(s.guest->ask(of("nvmlabout", i)) == s.outside->ask("nvmlabout 0"));
    CHECK(s.guest->ask("nvmlabout 3") == s.outside->ask("nvmlabout 1"));
    CHECK(split_words(s.guest->ask("nvmlabout 0")).at(0) == "0");
    // The fake library answers INVALID_ARGUMENT to a handle that isn't its own.
    for (const char* function : {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetEccMode",
                                 "nvmlDeviceGetPersistenceMode", "nvmlDeviceIsMigDeviceHandle"}) {
        CHECK(s.guest->ask("nvmlcall " + std::string(function) + " 1") == kOk);
        CHECK(s.guest->ask("nvmlcall " + std::string(function)) == kInvalid);
    }
}

TEST_CASE("a part has its GPU's NVLinks, which don't say what they lead to") {
    SplitScene s;
    REQUIRE(s.outside->ask("nvmllinks 0") == "0 18 " + std::to_string(NVML_NVLINK_VERSION_4_0) + " 0 18 0");
    for (unsigned i = 0; i < 4; i++)
        CHECK(s.guest->ask(of("nvmllinks", i)) == s.outside->ask("nvmllinks 0"));
    for (const char* function : {"nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetNvLinkRemotePciInfo_v2"})
        CHECK(s.guest->ask("nvmlcall " + std::string(function) + " 0") == kRefused);
    for (const char* function : {"nvmlDeviceGetNvLinkState", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetFieldValues"})
        CHECK(s.guest->ask("nvmlcall " + std::string(function)) == kInvalid);
}

TEST_CASE("functions that name physical GPUs are refused where one is split") {
    SplitScene s;
    // None of them is in the fake library either, whose answer is the same: it says so, and is not to be asked.
    for (const char* function :
         {"nvmlDeviceGetTopologyNearestGpus", "nvmlSystemGetTopologyGpuSet", "nvmlUnitGetDevices",
          "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlGpuInstanceGetInfo", "nvmlInternalGetExportTable",
          "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceRemoveGpu_v2", "nvmlEventSetWait_v3"})
        CHECK(s.guest->ask("nvmlcall " + std::string(function) + " 1") == kRefused);
    REQUIRE(s.guest->ask("nvmlcall nvmlDeviceGetInforomConfigurationChecksum 1") == kRefused);
    REQUIRE(s.guest->finish() == 0);
    Words asked;
    for (const std::string& line : split_lines(s.guest->err()))
        if (line.find("nvml") != line.npos)
            asked.push_back(line);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].find("nvmlDeviceGetInforomConfigurationChecksum") != std::string::npos);
}

TEST_CASE("where nothing is split NVML is asked all of it, and counts physical GPUs") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("2xh200", books.path(), {"CUSLICE_FRACTION=0.5"}));
    Guest outside(Guest::route("linked"), raw("2xh200", books.path()));
    REQUIRE(guest.ask("nvml") == kOk);
    REQUIRE(outside.ask("nvml") == kOk);
    CHECK(guest.ask("nvmlcount") == "0 2 0 2");
    for (const char* line : {"nvmluuid 1", "nvmlpci 1", "nvmlindex 1", "nvmlpair 0 1", "nvmlabout 1"})
        CHECK(guest.ask(line) == outside.ask(line));
    CHECK(guest.ask("nvmlcall nvmlDeviceGetTopologyNearestGpus 1") == kRefused);
    REQUIRE(guest.finish() == 0);
    CHECK(guest.err().find("nvmlDeviceGetTopologyNearestGpus") != std::string::npos);  // the fake library's own answer
}

// Everything that the guest commands can get out of NVML, and CUDA.
std::string everything(Guest& guest, unsigned count) {
    std::string all;
    const auto ask = [&](const std::string& line) { all += guest.ask(line) + "\n"; };
    for (unsigned i = 0; i < count; i++) {
        for (const char* command : {"nvmluuid", "nvmlindex", "nvmlpci", "nvmlserial", "nvmlmemory", "nvmlmemory2",
                                    "nvmlprocesses", "nvmlabout", "nvmllinks", "uuid", "pci"})
            ask(of(command, i));
        for (unsigned k = 0; k < count; k++)
            ask(of(of("nvmlpair", i), k));
    }
    return lower(all);
}

TEST_CASE("no answer of NVML's names a GPU that is split") {
    SplitScene s;
    const std::string uuid = lower(word(*s.outside, "nvmluuid 0"));
    const Words forms = split_words(lower(s.outside->ask("nvmlpci 0")));
    const std::string other = lower(word(*s.outside, "nvmluuid 1"));
    REQUIRE(uuid.size() == 40);
    REQUIRE(forms.size() == 10);
    for (const bool started : {false, true}) {
        if (started) {
            REQUIRE(s.guest->code("init") == kSuccess);
            REQUIRE(s.guest->code("retain 2") == kSuccess);
        }
        const std::string all = everything(*s.guest, 4);
        CHECK(all.find(other) != all.npos);
        CHECK(all.find(uuid) == all.npos);
        CHECK(all.find(uuid.substr(4)) == all.npos);
        const Words words = split_words(all);
        const std::set<std::string> said(words.begin(), words.end());
        for (size_t form = 1; form < forms.size(); form++)
            CHECK(said.count(forms[form]) == 0);
    }
}

}  // namespace
}  // namespace cuslice::tests
