// SPDX-License-Identifier: Apache-2.0
// Virtual GPUs: what settings make of the GPUs, and what the parts are called. What a value must not be is held in
// tests/cli; split_model_test.cpp has all combinations.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/split/identity.h"
#include "config/uuid/fake.h"
#include "tests/config/split_gpus.h"

namespace cuslice {
namespace {

using Texts = std::vector<std::string>;

// "0a 1024, 0b 1024, 1": GPU, part, MiB. Or the line that refuses.
std::string plan(const Given& given, std::span<const GpuIdentity> gpus = kGpus,
                 std::span<const uint64_t> totals = kTotals) {
    VirtualParts parts;
    ConfigError error;
    if (!plan_split(*settings_of(given), gpus, totals, parts, error))
        return std::string(line_of(error).view());
    std::string text;
    for (const VirtualPart& part : parts.view()) {
        if (!text.empty())
            text += ", ";
        text += std::to_string(gpus[part.gpu].index);
        if (!part.split)
            continue;
        text += static_cast<char>('a' + part.part);
        text += " " + std::to_string(part.bytes / kMiB);
        if (part.plus_context)
            text += "+";
        if (part.priority)
            text += ":" + std::to_string(*part.priority);
    }
    return text;
}

std::string uuid_of(unsigned gpu, unsigned part) { return identity_of_part(kGpus[gpu], part).uuid; }

}  // namespace

TEST_CASE("a GPU is split into equal partitions, by sizes, or not at all") {
    CHECK(plan({}) == "0, 1, 2");
    CHECK(plan({.split = "0=2"}) == "0a 1536, 0b 1536, 1, 2");
    CHECK(plan({.split = "1=4"}) == "0, 1a 1024, 1b 1024, 1c 1024, 1d 1024, 2");
    CHECK(plan({.split = "3"}) == "0a 1024, 0b 1024, 0c 1024, 1a 1364, 1b 1364, 1c 1364, 2a 666, 2b 666, 2c 666");
    CHECK(plan({.split = "0=1GiB+2GiB"}) == "0a 1024, 0b 2048, 1, 2");
    CHECK(plan({.split = "0=1GiB+rest,2=rest+123MiB"}) == "0a 1024, 0b 2048, 1, 2a 1879, 2b 123");
    // One part is a virtual GPU too, of this size; 1 equal part is the GPU itself, whatever is said of the others.
    CHECK(plan({.split = "0=123MiB,1=rest"}) == "0a 123, 1a 4096, 2");
    CHECK(plan({.split = "2,1=1"}) == "0a 1536, 0b 1536, 1, 2a 1000, 2b 1000");
    CHECK(plan({.split = "GPU-20=2,0001:81:00.0=2"}) == "0, 1a 2048, 1b 2048, 2a 1000, 2b 1000");
    // The list's order is the program's.
    const GpuIdentity reversed[] = {kGpus[2], kGpus[0]};
    const uint64_t totals[] = {kTotals[2], kTotals[0]};
    CHECK(plan({.split = "0=2"}, reversed, totals) == "2, 0a 1536, 0b 1536");
}

TEST_CASE("what is split is the slice: fraction and limit of a split GPU are of it") {
    CHECK(plan({.split = "0=2", .limit = "0=1GiB"}) == "0a 512, 0b 512, 1, 2");
    CHECK(plan({.split = "1=2", .fraction = "0.5"}) == "0, 1a 1024, 1b 1024, 2");
    CHECK(plan({.split = "1=2", .limit = "16GiB"}) == "0, 1a 2048, 1b 2048, 2");
    CHECK(plan({.split = "0=512MiB+rest", .limit = "1GiB"}) == "0a 512, 0b 512, 1, 2");
    Settings ceiling;
    Reason why;
    REQUIRE(ceiling.add({.key = Key::limit, .ceiling = true, .value = "1GiB", .origin = "ceiling"}, why));
    REQUIRE(ceiling.add({.key = Key::split, .value = "2", .origin = "--split"}, why));
    VirtualParts parts;
    ConfigError error;
    REQUIRE(plan_split(ceiling, kGpus, kTotals, parts, error));
    CHECK(parts.view()[5].bytes == 512 * kMiB);
    // Equal parts are whole steps of 2 MiB, also where the slice is none.
    CHECK(plan({.split = "0=3", .limit = "0=1000MiB"}) == "0a 332, 0b 332, 0c 332, 1, 2");
}

TEST_CASE("the context comes on top of all parts of a GPU, or of none") {
    CHECK(plan({.split = "0=1GiB+2GiB+context"}) == "0a 1024+, 0b 2048+, 1, 2");
    CHECK(plan({.split = "0=1GiB+rest+context,1=rest"}) == "0a 1024+, 0b 2048+, 1a 4096, 2");
    CHECK(plan({.split = "0=1GiB@1+2GiB@0+context"}) == "0b 2048+, 0a 1024+, 1, 2");
    CHECK(plan({.split = "0=2", .limit = "0=1GiB+context"}) == "0a 512+, 0b 512+, 1, 2");
    CHECK(plan({.split = "0=2+context"}) ==
          "cuslice: --split: 0=2+context: equal partitions are of the limit: write --split 2 and --limit SIZE+context");
}

TEST_CASE("an order is that of TensorFlow's device_ordinal: by place, then as written; whole GPUs are last") {
    CHECK(plan({.split = "0=1GiB@2+2GiB@1"}) == "0b 2048, 0a 1024, 1, 2");
    // {{1, 2}, {3, 4}} with {1, 2}, {1, 2} is 1, 3, 2, 4.
    CHECK(plan({.split = "0=100MiB@1+200MiB@2,1=300MiB@1+400MiB@2"}) == "0a 100, 1a 300, 0b 200, 1b 400, 2");
    CHECK(plan({.split = "1=1GiB@7+rest@0,2=1GiB@9999"}) == "1b 3072, 1a 1024, 2a 1024, 0");
    CHECK(plan({.split = "0=1GiB@0+1GiB@1,1=1GiB+1GiB"}) ==
          "cuslice: --split: 1=1GiB+1GiB: GPU 1's partitions have no places in the order, and those of GPU 0 have: all "
          "need "
          "them, or none");
    CHECK(plan({.split = "0=2,1=1GiB@0"}) ==
          "cuslice: --split: 1=1GiB@0: GPU 1's partitions have places in the order, and those of GPU 0 have none: all "
          "need "
          "them, or none");
}

TEST_CASE("any part may have a stream priority behind its size or its place, and goes where it would go without") {
    CHECK(plan({.split = "0=1GiB:-1+rest:0"}) == "0a 1024:-1, 0b 2048:0, 1, 2");
    CHECK(plan({.split = "0=1GiB+rest:-5,1=1GiB:2"}) == "0a 1024, 0b 2048:-5, 1a 1024:2, 2");
    CHECK(plan({.split = "0=1GiB@1:-1+2GiB@0"}) == "0b 2048, 0a 1024:-1, 1, 2");
    CHECK(plan({.split = "0=1GiB:-2+2GiB:-00+context"}) == "0a 1024+:-2, 0b 2048+:0, 1, 2");
    CHECK(plan({.split = "0=1GiB:-32+1GiB:32"}) == "0a 1024:-32, 0b 1024:32, 1, 2");
    CHECK(plan({.split = "0001:81:00.0=1GiB:-1"}) == "0, 1, 2a 1024:-1");
}

TEST_CASE("a part's identity is made of the number that is written behind its size, whatever its place") {
    const auto uuids = [](const char* split) {
        VirtualParts parts;
        ConfigError error;
        REQUIRE(plan_split(*settings_of({.split = split}), kGpus, kTotals, parts, error));
        Texts texts;
        for (const VirtualPart& part : parts.view())
            texts.emplace_back(identity_of_virtual(part, kGpus).uuid);
        return texts;
    };
    const std::string whole = kGpus[2].uuid;
    CHECK(uuids("0=1GiB#2+rest#5,1=rest#63") == Texts{uuid_of(0, 2), uuid_of(0, 5), uuid_of(1, 63), whole});
    CHECK(uuids("0=1GiB#2@1+rest#0@0,1=4GiB#00@2") == Texts{uuid_of(0, 0), uuid_of(0, 2), uuid_of(1, 0), whole});
    CHECK(uuids("0=1GiB+rest,1=rest") == Texts{uuid_of(0, 0), uuid_of(0, 1), uuid_of(1, 0), whole});
    CHECK(plan({.split = "0=1GiB#7:-1+2GiB#3+context"}) == "0a 1024+:-1, 0b 2048+, 1, 2");
}

TEST_CASE("parts that are more than the slice are refused, with what would be right") {
    CHECK(plan({.split = "0=1GiB+2049MiB"}) ==
          "cuslice: --split: 0=1GiB+2049MiB: 3073.0 MiB are more than the 3072.0 MiB of GPU 0; --split 0=2 gives equal "
          "partitions, and --oversubscribe allows it");
    CHECK(plan({.split = "1GiB+1GiB"}) ==
          "cuslice: --split: 1GiB+1GiB: 2048.0 MiB are more than the 2002.0 MiB of GPU 2; --split 2 gives equal "
          "partitions, "
          "and --oversubscribe allows it");
    CHECK(plan({.split = "0=1GiB+4GiB"}) ==
          "cuslice: --split: 0=1GiB+4GiB: 5120.0 MiB are more than the 3072.0 MiB of GPU 0; --split 0=2 gives equal "
          "partitions, and --oversubscribe allows partitions of up to 3072.0 MiB each");
    CHECK(plan({.split = "0=1GiB+1GiB", .limit = "0=1GiB"}) ==
          "cuslice: --split: 0=1GiB+1GiB: 2048.0 MiB are more than the 1024.0 MiB of GPU 0 (--limit); --split 0=2 "
          "gives equal partitions, and --oversubscribe allows it");
    CHECK(plan({.split = "0=4GiB"}) ==
          "cuslice: --split: 0=4GiB: 4096.0 MiB are more than the 3072.0 MiB of GPU 0; --split 0=1 leaves it whole");
    CHECK(plan({.split = "0=4GiB+rest"}) ==
          "cuslice: --split: 0=4GiB+rest: 4096.0 MiB and a rest are more than the 3072.0 MiB of GPU 0; --split 0=2 "
          "gives equal partitions");
    CHECK(plan({.split = "0=16777215TiB+16777215TiB"}).find("17179869184.0 GiB are more than") != std::string::npos);
    CHECK(plan({.split = "0=3GiB+rest"}) ==
          "cuslice: --split: 0=3GiB+rest: the rest of the 3072.0 MiB of GPU 0 is 0 bytes: a partition has at least "
          "64MiB");
    CHECK(plan({.split = "0=32"}).starts_with("0a 96, "));
    CHECK(plan({.split = "2=32"}) ==
          "cuslice: --split: 2=32: 32 partitions of the 2002.0 MiB of GPU 2 have 62.0 MiB each: a partition has at "
          "least 64MiB; "
          "at most 31 partitions");
    CHECK(plan({.split = "2=31"}).starts_with("0, 1, 2a 64, "));
    CHECK(plan({.split = "2", .limit = "100MiB"}) ==
          "cuslice: --split: 2: 2 partitions of the 100.0 MiB of GPU 0 (--limit) have 50.0 MiB each: a partition has "
          "at least "
          "64MiB");
    CHECK(plan({.split = "0=40,1=25"}) == "cuslice: --split: 1=25: more than 64 virtual GPUs in all");
    const GpuIdentity unnamed{-1, "GPU-10aa", ""};
    const uint64_t total = kGiB;
    CHECK(plan({.split = "GPU-1=2GiB"}, {&unnamed, 1}, {&total, 1}) ==
          "cuslice: --split: GPU-1=2GiB: 2048.0 MiB are more than the 1024.0 MiB of GPU-10aa; --split GPU-1=1 leaves "
          "it whole");
}

TEST_CASE("with oversubscribe only a part that is too large by itself is refused") {
    CHECK(plan({.split = "0=3GiB+2GiB", .oversubscribe = true}) == "0a 3072, 0b 2048, 1, 2");
    CHECK(plan({.split = "0=2", .oversubscribe = true}) == "0a 1536, 0b 1536, 1, 2");
    CHECK(plan({.split = "0=1GiB+rest", .oversubscribe = true}) == "0a 1024, 0b 2048, 1, 2");
    CHECK(plan({.split = "0=1GiB+4GiB", .oversubscribe = true}) ==
          "cuslice: --split: 0=1GiB+4GiB: 4096.0 MiB are more than the 3072.0 MiB of GPU 0; --split 0=2 gives equal "
          "partitions");
    CHECK(plan({.split = "0=2GiB+2GiB+rest", .oversubscribe = true}) ==
          "cuslice: --split: 0=2GiB+2GiB+rest: 4096.0 MiB and a rest are more than the 3072.0 MiB of GPU 0; --split "
          "0=3 gives equal partitions");
}

TEST_CASE("settings tell whether anything is to be split") {
    const auto splits = [](const Given& given) { return splits_any(*settings_of(given)); };
    CHECK_FALSE(splits({}));
    CHECK_FALSE(splits({.limit = "1GiB", .oversubscribe = true}));
    CHECK_FALSE(splits({.split = "1"}));
    CHECK_FALSE(splits({.split = "1,2=1"}));
    CHECK(splits({.split = "2"}));
    CHECK(splits({.split = "1,2=2"}));
    CHECK(splits({.split = "0=1GiB"}));
    // A file's, which an option hides for every GPU.
    for (const auto& [option, whole] : std::map<std::string, bool>{{"1", true}, {"0=1", true}, {"1=1", false}}) {
        Settings settings;
        ConfigError error;
        REQUIRE(add_list(settings, Key::split, {}, "--split", option, error));
        REQUIRE(add_list(settings, Key::split, {Source::user_file, 0}, "/a.toml:1:1", "0=4", error));
        CHECK(splits_any(settings) == !whole);
    }
}

TEST_CASE("a part's identity is its own, comes from the GPU's alone, and looks like one") {
    std::set<std::string> uuids, pcis;
    const Texts pci_texts{"0000:01:00.0", "0000:81:00.0", "00ff:01:00.0"};
    for (const std::string& pci : pci_texts)
        for (unsigned device = 0; device < 16; ++device) {
            GpuIdentity gpu = kGpus[device % 3];
            gpu.uuid[5] = "0123456789abcdef"[device];
            pci.copy(gpu.pci, pci.size());
            gpu.pci[5] = "0123456789abcdef"[device];
            gpu.uuid[6] = pci[5];
            gpu.uuid[7] = pci[3];
            for (unsigned part = 0; part < VirtualParts::kMax; ++part) {
                const GpuIdentity own = identity_of_part(gpu, part);
                const std::string uuid = own.uuid, id = own.pci;
                REQUIRE(uuid.size() == 40);
                REQUIRE(uuid.starts_with("GPU-"));
                for (const size_t dash : {12u, 17u, 22u, 27u})
                    REQUIRE(uuid[dash] == '-');
                REQUIRE(uuid[18] == '8');
                REQUIRE(std::string("89ab").find(uuid[23]) != std::string::npos);
                REQUIRE(id.size() == 12);
                REQUIRE(id.substr(4) == std::string(gpu.pci).substr(4));
                REQUIRE(std::string("cdef").find(id[0]) != std::string::npos);
                REQUIRE(own.index == gpu.index);
                uuids.insert(uuid);
                pcis.insert(id);
                const GpuIdentity again = identity_of_part(gpu, part);
                REQUIRE(uuid == again.uuid);
                REQUIRE(id == again.pci);
            }
        }
    CHECK(uuids.size() == pci_texts.size() * 16 * VirtualParts::kMax);
    // Two of the three are one domain, on other buses or on the same.
    CHECK(pcis.size() == 2 * 16 * VirtualParts::kMax);
    // Written down, so that no later version gives other names to what books and scripts know.
    CHECK(uuid_of(0, 0) == "GPU-28538188-c0a0-8430-9270-17eeb4821016");
    CHECK(uuid_of(0, 1) == "GPU-9ec5b123-2c4e-8851-a326-f47e424675d9");
    CHECK(std::string(identity_of_part(kGpus[2], 3).pci) == "c043:81:00.0");
}

// In a GPU's id they are the number of a PCI function, which is 0. Libraries that tell GPUs apart by a number made of
// the whole id may use them for something of their own.
TEST_CASE("the two lowest bits of a part's PCI id are 0, as the GPU's are") {
    for (const char* own : {"0000:01:00.0", "0000:FF:1F.0", "00000000:81:00.0", "ffff:3b:00.0"})
        for (unsigned part = 0; part < VirtualParts::kMax; ++part) {
            GpuIdentity gpu = kGpus[0];
            std::memset(gpu.pci, 0, sizeof gpu.pci);
            std::memcpy(gpu.pci, own, std::strlen(own));
            std::string digits;
            for (const char character : std::string(identity_of_part(gpu, part).pci))
                if (character != ':' && character != '.')
                    digits += character;
            INFO(own << ": " << digits);
            CHECK((std::stoull(digits, nullptr, 16) & 3) == 0);
        }
}

TEST_CASE("a part's identity keeps the form of the GPU's, and what is not known stays so") {
    const auto pci = [](const char* own) {
        GpuIdentity gpu = kGpus[0];
        std::memset(gpu.pci, 0, sizeof gpu.pci);
        std::memcpy(gpu.pci, own, std::strlen(own));
        return std::string(identity_of_part(gpu, 10).pci);
    };
    CHECK(pci("0000:81:00.0") == "c00a:81:00.0");
    CHECK(pci("00000000:81:00.0") == "0000c00a:81:00.0");
    CHECK(pci("0000:C1:00.0") == "C00A:C1:00.0");
    CHECK(pci("00FF:C1:00.0") == "FFCA:C1:00.0");
    CHECK(pci("00010000:81:00.0").substr(0, 4) == "0000");
    CHECK(pci("00010000:81:00.0")[4] >= 'c');
    CHECK(pci("00010000:81:00.0").substr(8) == ":81:00.0");
    CHECK(pci("") == "");
    CHECK(pci("nothing") == "");
    GpuIdentity mig{-1, "MIG-0c000000-0000-0000-0000-000000000000", ""};
    CHECK(std::string(identity_of_part(mig, 0).uuid).starts_with("MIG-"));
    CHECK(std::string(identity_of_part(GpuIdentity{}, 0).uuid).empty());
    // A part of a fake GPU is fake, and one of a real GPU isn't.
    const GpuIdentity fake{0, "GPU-f9859788-3006-4d00-a248-dd632703aa8d", ""};
    REQUIRE(is_fake_uuid(fake.uuid));
    CHECK(is_fake_uuid(identity_of_part(fake, 1).uuid));
    CHECK_FALSE(is_fake_uuid(uuid_of(0, 3)));
    // However the driver writes it.
    GpuIdentity upper = kGpus[0];
    for (char& character : upper.uuid)
        if (character >= 'a' && character <= 'f')
            character = static_cast<char>(character - 'a' + 'A');
    CHECK(uuid_of(0, 3) == identity_of_part(upper, 3).uuid);
    CHECK(std::string(identity_of_virtual({.gpu = 1}, kGpus).uuid) == kGpus[1].uuid);
    CHECK(std::string(identity_of_virtual({.gpu = 1, .part = 2, .split = true}, kGpus).uuid) == uuid_of(1, 2));
}

}  // namespace cuslice
